import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

test("the package has the compiled client and its types", () => {
  const [pack] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: new URL("..", import.meta.url) }));
  const modules = ["client", "error", "generated", "index", "publisher"].flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`]);
  assert.deepEqual(pack.files.map((file) => file.path).sort(), ["LICENSE", "README.md", ...modules, "package.json"]);
});
