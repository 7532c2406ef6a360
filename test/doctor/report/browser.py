# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""browser.py FOLDER: what the browser made of the samples' pages: its documents (.dom) and its pictures (.png)."""

import collections
import html.parser
import pathlib
import struct
import sys
import zlib

FOLDER = pathlib.Path(sys.argv[1])
SAMPLES = "broken", "healthy", "hostile", "small", "large"


def same(what, value, expected):
    if value != expected:
        sys.exit(f"{what} is {value!r}, expected {expected!r}")


# --- Documents ------------------------------------------------------------------------------------------------------


class Document(html.parser.HTMLParser):
    """All elements of a document: (tag, attributes); and the text of each finding's heading."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.headings = []
        self.in_heading = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "h3":
            self.headings.append("")
            self.in_heading = True

    def handle_endtag(self, tag):
        if tag == "h3":
            self.in_heading = False

    def handle_data(self, data):
        if self.in_heading:
            self.headings[-1] += data

    def count(self, tag, of_class=None):
        return len([1 for name, attrs in self.elements
                    if name == tag and (of_class is None or of_class in (attrs.get("class") or "").split())])

    def body(self):
        return next(attrs for tag, attrs in self.elements if tag == "body")


def check_document(sample, width):
    document = Document((FOLDER / f"{sample}.{width}.dom").read_text(encoding="utf-8"))
    body, where = document.body(), f" of {sample} at {width}"
    same("the width" + where, body["data-width"], str(width))
    same("the title" + where, body["data-title"], "gcap-doctor: python serve.py")
    # The page's, the attacker's, which did not run, and the probe.
    same("scripts" + where, document.count("script"), 3)
    same("images" + where, document.count("img") + document.count("iframe") + document.count("link"), 0)
    handlers = [name for _, attrs in document.elements for name in attrs if name.startswith("on")]
    same("handlers" + where, handlers, [])
    for what in "out", "open-out", "unreachable", "unnamed", "closed", "texts-out":
        same(what + where, body["data-" + what], "0")
    for what in "falling", "rising", "is-open":
        same(what + where, body["data-" + what], "true")
    same("calls open at first" + where, body["data-was-open"], "false")
    if int(body["data-finding-top"]) > 450:
        sys.exit(f"the findings begin {body['data-finding-top']} pixels down" + where)
    return document


def check_documents():
    documents = {sample: check_document(sample, 400) for sample in SAMPLES}
    broken = documents["broken"]
    same("findings", broken.count("article", "finding"), 2)
    same("the first", broken.headings[0].startswith("errorcudaStreamSynchronize on stream 1"), True)
    slices = [broken.count("rect", name) for name in ("s-call", "s-node", "s-failed", "s-culprit")]
    same("slices", slices, [2, 4, 3, 2])
    same("boxes", documents["healthy"].count("rect", "k0"), 2)
    same("the hostile heading", "</title></style></script><script>" in documents["hostile"].headings[0], True)
    same("rows of a thousand nodes", documents["large"].count("td", "id"), 1000)
    small = check_document("small", 1280)
    same("boxes of sixty nodes", sum(small.count("rect", f"k{i}") for i in range(8)), 60)
    same("rows of line 103", small.body()["data-filtered"], "1")


# --- Pictures -------------------------------------------------------------------------------------------------------


def paeth(left, up, corner):
    guess = left + up - corner
    by_left, by_up, by_corner = abs(guess - left), abs(guess - up), abs(guess - corner)
    if by_left <= by_up and by_left <= by_corner:
        return left
    return up if by_up <= by_corner else corner


def unfilter(kind, row, above, step):
    """One row of a picture of 8-bit samples, `step` of them a pixel, as in the PNG specification's filters."""
    if kind == 1:
        for i in range(step, len(row)):
            row[i] = (row[i] + row[i - step]) & 255
    elif kind == 2:
        for i, up in enumerate(above):
            row[i] = (row[i] + up) & 255
    elif kind == 3:
        for i, up in enumerate(above):
            row[i] = (row[i] + ((row[i - step] if i >= step else 0) + up) // 2) & 255
    elif kind == 4:
        for i, up in enumerate(above):
            left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
            row[i] = (row[i] + paeth(left, up, corner)) & 255


def read_picture(name):
    """Width, height, and how many pixels have which colour."""
    data = (FOLDER / name).read_bytes()
    same("the signature of " + name, data[:8], b"\x89PNG\r\n\x1a\n")
    at, packed, width, height, step = 8, b"", 0, 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", data[at + 8:at + 21])
            same("depth and interlace of " + name, (depth, interlace), (8, 0))
            step = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    rows = zlib.decompress(packed)
    colours, above, length = collections.Counter(), bytearray(width * step), width * step
    for y in range(height):
        row = bytearray(rows[y * (length + 1) + 1:(y + 1) * (length + 1)])
        unfilter(rows[y * (length + 1)], row, above, step)
        colours.update(zip(row[0::step], row[1::step], row[2::step]))
        above = row
    return width, height, colours


def check_picture(sample, width, scheme, page, mark):
    name = f"{sample}.{width}.{scheme}.png"
    wide, high, colours = read_picture(name)
    same("the size of " + name, (wide, high), (width, 900))
    total = wide * high
    # The page's own colours are there, and something is written on them.
    same("the page's colour in " + name, colours[page] > total // 20, True)
    ink = sum(count for colour, count in colours.items() if abs(sum(colour) - sum(page)) > 250)
    same("2 % ink in " + name, total // 50 < ink < total // 2, True)
    same("the colour of the verdict in " + name, colours[mark] > 50, True)


def check_pictures():
    light, dark = (0xF6, 0xF7, 0xF9), (0x14, 0x17, 0x1B)
    check_picture("broken", 1280, "light", light, (0xB3, 0x26, 0x1E))
    check_picture("broken", 400, "light", light, (0xB3, 0x26, 0x1E))
    check_picture("broken", 1280, "dark", dark, (0xFF, 0x8F, 0x85))


check_documents()
check_pictures()
