// The JSON of the page, compressed in the element `data`.

/** The text that `--json` prints. */
async function readText() {
  const packed = Uint8Array.from(atob(byId("data").textContent), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).text();
}

/** Let the person keep that text as a file. */
function offerJson(text) {
  byId("save-json").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    make("a", { href: address, download: "peaksight.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}

/** Unpack the data, show what needs scripts, and let `draw` draw; how long it took is a mark of the page. */
async function startPage(draw) {
  const text = await readText();
  offerJson(text);
  offerThemes();
  for (const hidden of document.querySelectorAll(".drawn, .bar .tools")) hidden.hidden = false;
  draw(JSON.parse(text));
  performance.mark("interactive");
  document.documentElement.dataset.ready = "true";
}
