# SPDX-License-Identifier: Apache-2.0
"""Makes reStructuredText of comments and docstrings: plain text with indented formulas."""

import re

SECTION = re.compile(r"(Args|Returns|Raises):(?: (.*))?$")
MARKUP = re.compile(r"[\\*`|]|_(?!\w)")  # characters that reStructuredText would read as markup


def restructured(lines):
    """Escapes markup; an indented paragraph outside the sections becomes a literal block."""
    result, in_section, in_formula = [], False, False
    for line in lines:
        section = SECTION.match(line)
        indented = line.startswith("  ")
        if section:
            in_section = True
            result.append(f"{section.group(1)}:")
            if section.group(2):
                result.append(f"    {escaped(section.group(2))}")
        elif indented and not in_section and (in_formula or not (result and result[-1])):
            if not in_formula:
                result += ["::", ""]
            in_formula = True
            result.append(line)
        elif in_formula and not line:
            result.append(line)
        else:
            if in_formula and result[-1]:
                result.append("")
            in_formula = False
            if line and not indented:
                in_section = False
            result.append(escaped(line))
    return result


def escaped(text):
    """Code between backticks stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"`{part}`" if part.startswith("`") and len(part) > 1 else
                   MARKUP.sub(lambda match: "\\" + match.group(), part) for part in parts)
