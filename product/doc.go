// Package product puts the parts together: one configuration, the wiring of all roles, the commands. main.go runs its
// Execute and nothing else, so that a test runs the whole program as a person does.
//
// It is the one package that imports from everywhere; nothing but main imports it. pieces.go opens one part after the
// other, roles.go says which parts a role has, and what a part needs of another is handed over here as a small interface.
package product
