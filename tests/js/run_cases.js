// Plays the seasons on standard input, a JSON list, with the module named on the command line.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { played } from "./driver.js";

const module = await import(pathToFileURL(process.argv[2]));
const cases = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(cases.map(one => played(module, one))));
