#!/usr/bin/env python3
"""Warns of wording that is hard to read in the comments, messages and pages of changed lines. Never fails.

    tools/lint_words.py [SINCE]            # lines that differ from the commit SINCE; default: HEAD
    tools/lint_words.py --all [FOLDER...]  # all lines
"""
import re
import subprocess
import sys

import draw_sentences as tree

# (pattern, name of the habit, remedy). Patterns match single sentences, without code in backquotes.
HABITS = [
    (r"\b(those|what|whatever|whichever) (that |which )?(has|have|had|is|was|were|are) (\w+ed|\w+en|left|sent|gone|come|there)\b",
     "participle for a noun", 'name the thing: "evicted rows", "sent messages"'),
    (r"^(Of|What|Who|Whoever|Whose|Whom) (?!.*\?)", "sentence starts with a relative clause", "start with the thing that acts"),
    (r"\b(tells?|told|hears?|heard|nobody|whoever|by itself|of its own accord)\b", "people's words for machines",
     "notifies, receives, returns, does not block; name the user or the thread"),
    (r"\bbeside\b", '"beside"', "concurrently with, overlaps, in addition to, next to, stored with"),
    (r"\bgradients? of (the |its |all )?(\w+ )?weights?\b|\bweights' gradients?\b", "circumlocution", "wgrad"),
    (r"\b(products? of (two |the )?matri(x|ces)|matrix products?)\b", "circumlocution", "GEMM"),
    (r"\bso (many|much)\b(?! (as|that|less|more|fewer))|\bas many as there are\b|\bthe most that\b", "limit in words",
     '"every Nth", "at most N", "the maximum"'),
    (r"\b(go|goes|going|went) on\b", '"goes on"', "continues, resumes"),
    (r"\bheld? against\b", '"hold against"', "compare with"),
    (r"\bas (it was )?before\b(?! the)|\bnumbers (are|stay) (as|equal)\b", '"as before"', "results unchanged"),
    (r"\bwhere it is not there\b|\bthat (is|are) not there\b|\bis there,? (is|are)\b", '"there"', "exists, is missing, is available"),
    (r"\bleft out\b", '"left out"', "omitted, skipped, by default"),
    (r"\bin (a|one) row\b", '"in a row"', "sequentially, contiguous, consecutive"),
]


def changed_lines(since):
    """Maps each file to the numbers of its lines that differ from the commit."""
    diff = subprocess.run(["git", "diff", "-U0", "--no-color", since], cwd=tree.ROOT, capture_output=True, text=True).stdout
    lines, name = {}, None
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            name = line[6:] if line.startswith("+++ b/") else None
        elif (hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)) and name:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(name, set()).update(range(first, first + count))
    return lines


def warnings_of(text):
    """Yields (sentence, habit, remedy) for each habit in the text."""
    plain = re.sub(r"`[^`]*`|\[([^]]*)\]\([^)]*\)", lambda link: link[1] or "code", text)
    for sentence in re.split(r"(?<=[.;:!?]) +|\|", plain):
        for pattern, habit, remedy in HABITS:
            if re.search(pattern, sentence.strip(), re.IGNORECASE if pattern[0] != "^" else 0):
                yield sentence.strip(), habit, remedy


def main(arguments):
    everything = arguments[:1] == ["--all"]
    changed = None if everything else changed_lines(arguments[0] if arguments else "HEAD")
    count = 0
    for name in tree.files(arguments[1:] if everything else ()):
        if not everything and name not in changed or name == "tools/lint_words.py":
            continue
        lines = (tree.ROOT / name).read_text(encoding="utf-8", errors="replace").split("\n")
        for kind in tree.KINDS.values():
            found = list(kind(name, lines))
            for (first, text), following in zip(found, found[1:] + [(len(lines) + 1, "")]):
                length = max(1, min(following[0] - first, text.count(" ") // 3 + 1))
                if not everything and not changed[name] & set(range(first, first + length)):
                    continue
                for sentence, habit, remedy in warnings_of(text):
                    count += 1
                    print(f"{name}:{first}: {habit}: {sentence[:100]!r}; better: {remedy}")
    if count:
        print(f"{count} sentences to reword (warnings only)")


if __name__ == "__main__":
    main(sys.argv[1:])
