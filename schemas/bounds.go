package schemas

// MaxInterests is how many interests a pin, a user or a candidate may have.
const MaxInterests = 64
