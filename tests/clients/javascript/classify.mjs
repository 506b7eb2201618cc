// What Node.js and the browser share: pixels of an image to the label that an exported file gives it.

/** The best label and the logits of one image; `rgba` holds its pixels row by row, as PNG decoders and canvases do. */
export async function classify(ort, session, labels, { rgba, width, height }) {
  const plane = width * height;
  const pixels = new Float32Array(3 * plane);
  for (let pixel = 0; pixel < plane; pixel++) {
    for (let channel = 0; channel < 3; channel++) pixels[channel * plane + pixel] = rgba[4 * pixel + channel];
  }
  const pixel_values = new ort.Tensor("float32", pixels, [1, 3, height, width]);
  const { logits, topk_indices } = await session.run({ pixel_values });
  return { label: labels[Number(topk_indices.data[0])], logits: Array.from(logits.data) };
}
