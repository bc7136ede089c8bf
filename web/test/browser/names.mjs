// names.mjs - what people are shown instead of hashes.

/** No run of 16 hex digits in sight, but in what copies it and in what was recorded to the letter. */
export async function noHashes(page) {
  const found = await page.evaluate(() => {
    const seen = new Set();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const run = /(?=[0-9]*[a-f])[0-9a-f]{16,}/.exec(text.data);
      const at = text.parentElement;
      if (run && at.checkVisibility() && !at.closest('.trace-id, textarea, .hashes[open], pre'))
        seen.add(`${run[0]} in ${at.outerHTML.slice(0, 160)}`);
    }
    return [...seen];
  });
  if (found.length > 0) throw new Error(`hashes in sight:\n  ${found.join('\n  ')}`);
}
