#!/usr/bin/env python3
"""Comments of headers are sentences: they begin with a subject or a verb, not with "Of", "What", "Whether", "Also of", "The same of" or
"...", which make the reader look for the rest of the sentence elsewhere. A comment beside code may be a noun phrase, but not begin with "of"."""
import re
import sys

import sources

# Folders of src/hone whose comments are still to be rewritten ("facade" is src/hone itself). Nothing may be added here.
NOT_YET = set()

FRAGMENT = re.compile(r"(Of|What|Whether|Also (?:of|for|in|where)|The same (?:of|for|in|as|with|but|where)|\.\.\.)(?= )")
FILE = re.compile(r"[\w/]+\.h - ")  # how the first comment of a header begins


def comments(lines):
    """(number, text, whether it stands beside code) of the first line of each paragraph of the // comments."""
    begun = None  # where the comment on the line before begins: its column, or None
    for number, line in enumerate(lines, 1):
        before, mark, text = line.partition("//")
        if not mark or before.count('"') % 2:
            begun = None
            continue
        beside, column = bool(before.strip()), len(before)
        if not beside and text.strip() == "":
            begun = None
        elif beside or begun != column:
            yield number, text.strip(), beside
            begun = column


def fragments(lines):
    """(number, how the comment begins) of each comment that begins with a fragment."""
    for number, text, beside in comments(lines):
        text = FILE.sub("", text)
        match = FRAGMENT.match(text[:1].upper() + text[1:])
        if match and not (beside and match.group() in ("What", "Whether")):
            yield number, match.group()


def folder_of(path):
    return path.parts[2]


def main():
    failed, still = False, set()
    for path in sources.files(".h", under=("src/hone",)):
        for number, words in fragments(sources.lines(path)):
            if folder_of(path) in NOT_YET:
                still.add(folder_of(path))
            else:
                failed = True
                print(f"{path}:{number}: the comment begins with \"{words}\", expected a sentence with a subject")
    for folder in sorted(NOT_YET - still):
        failed = True
        print(f"{folder} has no such comments any more: take it off NOT_YET in scripts/check_words.py")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
