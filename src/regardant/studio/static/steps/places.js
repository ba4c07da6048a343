// Display names of places in a model, with layers counted from 1.

// "encoder.layers.0.after_feed_forward.norm": "Encoder, layer 1, norm after feed-forward".
export function readablePlace(place) {
  const parts = place.split(".");
  const words = [];
  parts.forEach((part, i) => {
    if (part === "layers") return;
    if (parts[i - 1] === "layers") words.push(`layer ${Number(part) + 1}`);
    else words.push(part.replaceAll("_", " ").replace(/\b(self|cross) attention/, "$1-attention").replace("feed forward", "feed-forward"));
  });
  if (words.at(-1) === "norm" && words.length > 1) words.splice(-2, 2, `norm ${words.at(-2)}`);
  const name = words.length === 1 && !["encoder", "decoder"].includes(words[0]) ? `embedding of the ${words[0]}` : words.join(", ");
  return name[0].toUpperCase() + name.slice(1);
}
