# SPDX-License-Identifier: MIT
"""Many defects in one C file: each function with a defect has a copy for each of them, and the environment variable
CAI_PLANTED, a number, says which copy is called. Without it the file does what it did.

    int f(int a) {...}   becomes   static int f_3(int a) {...}, with defect 3, f_8, with defect 8, f_0, as it was, and
                                   int f(int a) { switch (cai_planted) { case 3: return f_3(a); ... } }

A defect that is not within one function, or in one whose arguments cannot be passed on, needs a file of its own.
"""

import dataclasses
import re

# Before everything else in the file, which is why it includes nothing
SWITCH = """#ifndef CAI_PLANTED_SWITCH
#define CAI_PLANTED_SWITCH
extern char *getenv(const char *name);
extern int atoi(const char *text);
static int cai_planted;
__attribute__((constructor)) static void cai_planted_read(void)
{
    const char *text = getenv("CAI_PLANTED");
    if (text) cai_planted = atoi(text);
}
#endif
"""
STATIC = re.compile(r"\b(static|CAI_PRIV_[A-Z_]+)\b")  # macros of these names end with the word static


@dataclasses.dataclass
class Function:
    """A function that is defined in a text: text[begin:end], of which the head goes up to the line with the brace."""

    begin: int
    end: int
    head: str
    name: str
    arguments: list[str]

    def returns_nothing(self):
        return re.search(r"\bvoid\s+" + self.name + r"\s*\(", self.head) is not None


def split_arguments(text):
    """The names of a list of parameters; None if they cannot be passed on."""
    if text.strip() in ("", "void"):
        return []
    names = []
    for one in re.split(r",(?![^(]*\))", text):
        found = re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)|(\w+)\s*(?:\[[^\]]*\]\s*)*$", one.strip())
        if not found:
            return None  # "...", for one
        names.append(found.group(1) or found.group(2))
    return names


def function_of(text, begin, brace, end):
    """The function with its head at text[begin:brace], or None if that is no head."""
    head = re.sub(r"/\*.*?\*/", "", text[begin:brace], flags=re.S).rstrip()
    if not head.endswith(")"):
        return None
    depth, at = 0, len(head)
    while at and (depth or at == len(head)):
        at -= 1
        depth += {")": 1, "(": -1}.get(head[at], 0)
    name = re.search(r"[\s*](\w+)\s*$", head[:at])  # behind a type: no macro that makes a head
    arguments = split_arguments(head[at + 1 : -1])
    return Function(begin, end, head, name.group(1), arguments) if name and arguments is not None else None


def functions_of(text):
    """The functions that a text defines, their braces in the first column."""
    found = []
    for match in re.finditer(r"^\{\n.*?^\}\n", text, re.M | re.S):
        begin = match.start()
        while begin:  # up to what cannot be a line of the head
            above = text.rfind("\n", 0, begin - 1) + 1
            line = text[above : begin - 1]
            if not line.strip() or line.startswith(("#", "}", "/*")) or line.rstrip().endswith((";", "*/", "\\")):
                break
            begin = above
        function = function_of(text, begin, match.start(), match.end())
        if function:
            found.append(function)
    return found


def clone(function, text, number):
    """The function as a static one of another name. text: its definition."""
    text = re.sub(r"\b" + function.name + r"(\s*\()", rf"{function.name}_planted_{number}\1", text, count=1)
    text = re.sub(r"\b(CAI_API|CAI_MUST_CHECK)\b\s*", "", text)
    return text if STATIC.search(function.head) else "static " + text


def dispatcher(function, numbers):
    """The function itself, which calls the one that was chosen."""
    passed = f"({', '.join(function.arguments)})"
    before, after = ("", " return;") if function.returns_nothing() else ("return ", "")
    cases = [f"    case {n}: {before}{function.name}_planted_{n}{passed};{after}\n" for n in numbers]
    rest = f"    default: {before}{function.name}_planted_0{passed};{after}\n"
    return f"{function.head}\n{{\n    switch (cai_planted) {{\n{''.join(cases)}{rest}    }}\n}}\n"


@dataclasses.dataclass
class Mutated:
    """A text with many defects, and which lines are those of which defect."""

    text: str
    lines: dict[int, range]  # by the number of the defect

    def numbers_at(self, line):
        return [number for number, lines in self.lines.items() if line in lines]


def plant_together(text, changes):
    """A text with all those changes that fit. changes: (number, begin, end, the whole text with the change), of what
    is replaced from begin to end."""
    functions = functions_of(text)
    by_function = {}
    for number, begin, end, changed in changes:
        for function in functions:
            if function.begin <= begin and end <= function.end:
                definition = changed[function.begin : function.end + len(changed) - len(text)]
                by_function.setdefault(function.begin, (function, []))[1].append((number, definition))
    made, at, lines = SWITCH if by_function else "", 0, {}
    for function, defects in sorted(by_function.values(), key=lambda of: of[0].begin):
        made += text[at : function.begin] + function.head + ";\n"
        for number, definition in [*defects, (0, text[function.begin : function.end])]:
            first = made.count("\n") + 1
            made += clone(function, definition, number)
            if number:
                lines[number] = range(first, made.count("\n") + 1)
        made += dispatcher(function, [number for number, _ in defects])
        at = function.end
    return Mutated(made + text[at:], lines)
