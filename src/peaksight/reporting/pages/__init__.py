"""Pages for people: one HTML file each, which opens from disk, has its scripts and charts inside and fetches nothing.

How a page is put together:

- A function in a module of its own (`report_page.report_to_html`) gets a record, computes nothing that the record does
  not say, and calls `frame.render_page` with the name of a template, the JSON of the record and the names of scripts.
- The template (`templates/report.html`) extends `base.html` and fills its blocks: `command` (what was typed), `content`
  (the sections) and `origin` (the footer). `macros.html` has the parts that pages share: `size` for every number of
  bytes, which puts it into a `<data>` element by which tests compare it with the JSON, tables of holders, badges.
- Text, tables and findings are rendered here, so that the page can be read and printed without scripts.
- `frame` sets in the JSON byte for byte as `--json` prints it, compressed (gzip, base64): a page of a long run
  stays small, and no text of a script can end the element. The scripts of `assets` read it (`data.js`) and draw.
- `assets` are small files of plain JavaScript, joined in the order of `assets.REPORT`, and CSS. The Content Security
  Policy lets run what has their hashes and nothing else.
- `palette` is the one home of the colours of categories: custom properties of CSS, which the scripts ask for.
"""
