// What the WebAssembly says of each text, as JSON: node answers.mjs PROGRAM.js QUESTIONS.json

import { readFileSync } from "node:fs";
import vm from "node:vm";
import { gunzipSync } from "node:zlib";

const [script, file] = process.argv.slice(2);
const { PROGRAM, bindgen } = vm.runInThisContext(`${readFileSync(script, "utf8")}; ({ PROGRAM, bindgen })`);
const program = bindgen();
program.initSync({ module: new WebAssembly.Module(gunzipSync(Buffer.from(PROGRAM, "base64"))) });
const { now, questions } = JSON.parse(readFileSync(file, "utf8"));
const answers = questions.map(([text, facts]) => {
  const checked = new program.Checked(text, facts, now);
  const verdict = checked.verdict();
  const details = JSON.parse(verdict).objects.flatMap(({ findings }) => findings.map(({ number }) => checked.details(number)));
  const answer = [verdict, checked.repair(), checked.report(), ...details];
  checked.free();
  return answer;
});
console.log(JSON.stringify(answers));
