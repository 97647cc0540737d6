/* node run_cases.js PROGRAM.wasm SHIM.js < cases > answers. A case is [options, input], as JSON. */
const fs = require("fs");
const vm = require("vm");

const [program, shim] = process.argv.slice(2);
vm.runInThisContext(fs.readFileSync(shim, "utf8"), shim);
const module_ = new WebAssembly.Module(fs.readFileSync(program));
const cases = JSON.parse(fs.readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(cases.map(([options, input]) => globalThis.cai_run(module_, options, input))));
