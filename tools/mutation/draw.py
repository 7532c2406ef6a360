# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Where a C source of gcap can be broken, and how: seven kinds of edits, found in its tokens.

An edit is in the body of a function, and never in comments, strings, directives, messages, log calls, assertions, or
the taking of locks. Three edits are not made: more elements than calloc or an array needs, and calloc's arguments in
another order, which nothing can notice; and another order of two statuses that are joined, since only a test notices
that makes both calls fail.
"""

import dataclasses
import re

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<char>'(?:\\.|[^'\\\n])*')
    |(?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[uUlLfF]*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<space>\s+)
    |(?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)
OPENING = {"(": ")", "[": "]", "{": "}"}
OTHER_OPERATOR = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
                  "+": "-", "-": "+", "+=": "-=", "-=": "+="}
# Calls whose arguments say something to people.
MESSAGE = re.compile(r"GCAP_STATUS\w*|GCAP_SHAPE_REFUSE|gcap_status_annotate|gcap_log\w*|\w*assert\w*|_Static_assert")
# Checks whose first argument is the condition, and the others a message.
CHECK = "REQUIRE"
LOCK = re.compile(r"(^|_)(un)?lock(_|$)")
NO_CALL = re.compile(r"GCAP_\w+|va_(start|end|copy)|gcap_status_ignore")
# Calls whose arguments keep their places.
SYMMETRIC = {"calloc", "gcap_status_join"}
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "do", "else", "case", "goto", "_Alignof"}


@dataclasses.dataclass(frozen=True)
class Edit:
    kind: str
    start: int
    end: int
    becomes: str

    def apply(self, text):
        return text[:self.start] + self.becomes + text[self.end:]


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int


def tokens_of(text):
    """All tokens that a compiler sees."""
    return [Token(match.lastgroup, match.group(), match.start(), match.end()) for match in TOKEN.finditer(text)
            if match.lastgroup not in ("comment", "directive", "space")]


class Source:
    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.partner = self.partners()
        self.bodies = list(self.functions())  # first token, last token, whether it returns a status
        self.silent = self.messages()

    def partners(self):
        """Of each bracket, the index of the other one."""
        partner = {}
        opened = []
        for i, token in enumerate(self.tokens):
            if token.kind == "mark" and token.text in OPENING:
                opened.append(i)
            elif token.kind == "mark" and token.text in OPENING.values() and opened:
                other = opened.pop()
                partner[other] = i
                partner[i] = other
        return partner

    def is_mark(self, i, text):
        return 0 <= i < len(self.tokens) and self.tokens[i].kind == "mark" and self.tokens[i].text == text

    def is_word(self, i, *texts):
        token = self.tokens[i] if 0 <= i < len(self.tokens) else None
        return token is not None and token.kind == "word" and (not texts or token.text in texts)

    def between(self, first, last):
        """The text from one token to another, both included."""
        return self.text[self.tokens[first].start:self.tokens[last].end]

    def functions(self):
        i = start = 0
        while i < len(self.tokens):
            if self.is_mark(i, "{") and i in self.partner:
                if self.is_mark(i - 1, ")"):
                    name = self.partner[i - 1] - 1
                    returned = [token.text for token in self.tokens[start:name]]
                    yield i, self.partner[i], "gcap_status_t" in returned and "*" not in returned
                i = self.partner[i]
                start = i + 1
            elif self.is_mark(i, ";"):
                start = i + 1
            i += 1

    def calls(self, first, last):
        """The calls between two tokens, as the name's index."""
        for i in range(first, last):
            if self.is_word(i) and self.is_mark(i + 1, "(") and self.tokens[i].text not in KEYWORDS:
                yield i

    def messages(self):
        """The indices of the tokens that are in a message, a log call, an assertion or the taking of a lock."""
        silent = set()
        for i in self.calls(0, len(self.tokens)):
            name = self.tokens[i].text
            if MESSAGE.fullmatch(name) or LOCK.search(name):
                silent.update(range(i, self.partner[i + 1] + 1))
            elif name == CHECK:
                silent.update(range(self.arguments(i)[0][1] + 1, self.partner[i + 1]))
        return silent

    def arguments(self, name):
        """The first and the last token of each argument of a call."""
        found = []
        i = first = name + 2
        last = self.partner[name + 1]
        while i < last:
            if self.is_mark(i, ","):
                found.append((first, i - 1))
                first = i + 1
            i = self.partner[i] + 1 if self.tokens[i].text in OPENING and i in self.partner else i + 1
        return found + [(first, last - 1)] if last > name + 2 else []

    def statement_end(self, i):
        """The index of the semicolon that ends the statement with this token."""
        while not self.is_mark(i, ";"):
            i = self.partner[i] + 1 if self.tokens[i].text in OPENING and i in self.partner else i + 1
        return i

    # --- The kinds -----------------------------------------------------------------------------------------------

    def operators(self, first, last, _status):
        for i in range(first, last):
            token = self.tokens[i]
            if token.kind != "mark" or token.text not in OTHER_OPERATOR:
                continue
            before = self.tokens[i - 1]
            is_binary = before.text in (")", "]") or before.kind in ("number", "char") or (
                before.kind == "word" and before.text not in KEYWORDS)
            if is_binary:
                yield i, i, OTHER_OPERATOR[token.text]

    def constants(self, first, last, _status):
        for i in range(first, last):
            token = self.tokens[i]
            if self.is_word(i, "true", "false"):
                yield i, i, "false" if token.text == "true" else "true"
            match = re.fullmatch(r"(\d+)([uUlL]*)", token.text) if token.kind == "number" else None
            if match is None:
                continue
            value = int(match[1], 8 if match[1].startswith("0") else 10)
            of_array = self.is_mark(i - 1, "[") and self.is_word(i - 2) and self.is_word(i - 3) and (
                self.tokens[i - 3].text not in KEYWORDS)
            of_calloc = self.is_mark(i - 1, "(") and self.is_word(i - 2, "calloc")
            if not of_array and not of_calloc:
                yield i, i, f"{value + 1}{match[2]}"
            if value > 0:
                yield i, i, f"{value - 1}{match[2]}"

    def conditions(self, first, last, _status):
        for i in range(first, last):
            if self.is_word(i, "if", "while") and self.is_mark(i + 1, "("):
                end = self.partner[i + 1]
                yield i + 1, end, f"(!{self.between(i + 1, end)})"

    def removed_calls(self, first, last, _status):
        for i in self.calls(first, last):
            end = self.partner[i + 1] + 1
            start = i
            if self.is_mark(i - 1, ")") and self.between(self.partner[i - 1], i - 1) == "(void)":
                start = self.partner[i - 1]
            begins = self.tokens[start - 1].text in (";", "{", "}", ")", ":", "else")
            if begins and self.is_mark(end, ";") and not NO_CALL.fullmatch(self.tokens[i].text):
                yield start, end, f"{{ if (0) {self.between(start, end)} }}"

    def swapped_arguments(self, first, last, _status):
        for i in self.calls(first, last):
            if self.tokens[i].text in SYMMETRIC:
                continue
            arguments = self.arguments(i)
            for (a, b), (c, d) in zip(arguments, arguments[1:]):
                if self.between(a, b) != self.between(c, d):
                    yield a, d, f"{self.between(c, d)}, {self.between(a, b)}"

    def dropped_errors(self, first, last, returns_status):
        for i in range(first, last):
            if self.is_word(i, "GCAP_RETURN_IF_ERROR"):
                yield i, i, "gcap_status_free"
            elif self.is_word(i, "return") and returns_status:
                end = self.statement_end(i)
                if self.between(i + 1, end) != "NULL;":
                    yield i, end, f"{{ gcap_status_free({self.between(i + 1, end - 1)}); return NULL; }}"
            elif self.is_word(i, "status") and self.is_mark(i + 1, "=") and not self.is_mark(i - 1, "*"):
                end = self.statement_end(i)
                made = self.between(i + 2, end - 1)
                if "(" in made and not any(self.is_mark(j, "=") for j in range(i + 2, end)):
                    yield i + 2, end - 1, f"(gcap_status_free({made}), (gcap_status_t)NULL)"

    def early_returns(self, first, last, _status):
        for i in range(first, last):
            if self.is_word(i, "GCAP_RETURN_IF_NULL"):
                yield i, i, "(void)"
            if not self.is_word(i, "if") or not self.is_mark(i + 1, "("):
                continue
            end = self.partner[i + 1]
            if self.is_word(end + 1, "return"):
                returns, close = True, self.statement_end(end + 1)
            elif self.is_mark(end + 1, "{"):
                close = self.partner[end + 1]
                # The last statement of the block.
                begins = [j for j in range(end + 2, close) if self.tokens[j - 1].text in (";", "{", "}", ")")]
                returns = any(self.is_word(j, "return") and self.statement_end(j) == close - 1 for j in begins)
            else:
                continue
            if returns and not self.is_word(close + 1, "else"):
                yield i + 1, end, f"(0 && {self.between(i + 1, end)})"

    KINDS = {
        "operator": operators,
        "constant": constants,
        "negated condition": conditions,
        "removed call": removed_calls,
        "swapped arguments": swapped_arguments,
        "dropped error": dropped_errors,
        "dropped return": early_returns,
    }

    def edits(self, kind):
        """All edits of a kind, in the order of the text."""
        found = []
        for first, last, returns_status in self.bodies:
            for a, b, becomes in self.KINDS[kind](self, first + 1, last, returns_status):
                # A returned message may be dropped; no other edit begins in what people read.
                if a not in self.silent and not (b in self.silent and kind == "swapped arguments"):
                    found.append(Edit(kind, self.tokens[a].start, self.tokens[b].end, becomes))
        return found


class Places:
    """The edits of several files by kind, each drawn once."""

    def __init__(self, texts, random):
        self.random = random
        sources = {path: Source(text) for path, text in sorted(texts.items())}
        self.left = {kind: [(path, edit) for path, source in sources.items() for edit in source.edits(kind)]
                     for kind in Source.KINDS}
        self.turn = []

    def next_kind(self):
        """A kind that has a place, all in turns: None when nothing is left."""
        if not any(self.left.values()):
            return None
        while True:
            if not self.turn:
                self.turn = list(self.left)
                self.random.shuffle(self.turn)
            kind = self.turn.pop()
            if self.left[kind]:
                return kind

    def draw(self, kind):
        """A path and an edit, or None where the kind has none left."""
        left = self.left[kind]
        return left.pop(self.random.randrange(len(left))) if left else None
