// node node.mjs MODEL LABELS IMAGES...: one JSON line an image, from onnxruntime-node.
import { readFileSync } from "node:fs";
import ort from "onnxruntime-node";
import { PNG } from "pngjs";
import { classify } from "./classify.mjs";

const [model, labelFile, ...images] = process.argv.slice(2);
const labels = readFileSync(labelFile, "utf8").trimEnd().split("\n");
const session = await ort.InferenceSession.create(model);
for (const image of images) {
  const { data, width, height } = PNG.sync.read(readFileSync(image));
  console.log(JSON.stringify(await classify(ort, session, labels, { rgba: data, width, height })));
}
