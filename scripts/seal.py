#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seals SPIR-V modules: floating-point results keep their bits on every driver.

A driver may fuse a product with the sum that takes it, or fold constants into it, and has other bits
then. So the build rewrites each module before it is optimised:

  seal.py seal IN OUT      decorates every floating-point result with NoContraction and turns
                           a + b into fma(a, one, b) and a - b into fma(b, -one, a), where `one` is
                           the first member of the push constants, 1.0f, which no compiler knows
  seal.py check IN         fails if a floating-point result is not sealed, if a sum is left that a
                           driver could contract, or if a function has a variable in memory: some
                           drivers return wrong values from arrays that are indexed at run time
  seal.py embed OUT NAME=FILE…   writes C++ that holds the modules, compressed

Seal first and optimise after: spirv-opt itself may make an fma of a product and a sum.
"""

import struct
import sys

# Opcodes and enumerants of the SPIR-V specification.
EXT_INST_IMPORT, MEMBER_NAME, EXT_INST = 11, 6, 12
TYPE_INT, TYPE_FLOAT, TYPE_POINTER, CONSTANT = 21, 22, 32, 43
FUNCTION, FUNCTION_END, VARIABLE, LOAD, ACCESS_CHAIN, DECORATE = 54, 56, 59, 61, 65, 71
F_CONVERT, F_NEGATE, F_ADD, F_SUB, LABEL, LINE, NO_LINE = 115, 127, 129, 131, 248, 8, 317
# Negate, add, subtract, multiply, divide, remainders, vector and matrix products, dot.
ARITHMETIC = {127, 129, 131, 133, 136, 140, 141, 142, 143, 144, 145, 146, 147, 148}
NO_CONTRACTION, PUSH_CONSTANT, FUNCTION_STORAGE, FMA = 42, 9, 7, 50
FIRST_OF_DECORATIONS, TYPES = {71, 72, 73, 74}, range(19, 60)
# For embed(), which only makes longer streams if an opcode is missing: instructions that begin with
# their result, and those without one. A decoration's target is as good as a result.
RESULT_FIRST = {*range(19, 40), EXT_INST_IMPORT, LABEL, DECORATE}
NO_RESULT = {3, 4, 5, MEMBER_NAME, 10, 14, 15, 16, 17, FUNCTION_END, 62, 63, 64, 72,
             *range(246, 248), *range(249, 256), NO_LINE, LINE}


class Failure(Exception):
    pass


def text_of(words):
    return struct.pack(f"<{len(words)}I", *words).split(b"\0")[0].decode()


def opcode(words):
    return words[0] & 0xffff


def instruction(code, *operands):
    return [len(operands) + 1 << 16 | code, *operands]


class Module:
    def __init__(self, data):
        if len(data) % 4 or len(data) < 20 or data[:4] != b"\x03\x02\x23\x07":
            raise Failure("this is no SPIR-V module")
        words = list(struct.unpack(f"<{len(data) // 4}I", data))
        self.header, self.body = words[:5], []
        at = 5
        while at < len(words):
            length = words[at] >> 16
            self.body.append(words[at:at + length])
            at += length
        self.glsl = next((i[1] for i in self.body if opcode(i) == EXT_INST_IMPORT
                          and text_of(i[2:]) == "GLSL.std.450"), 0)
        self.floats = {i[1]: i[2] for i in self.body if opcode(i) == TYPE_FLOAT}

    def pack(self):
        words = self.header + [word for i in self.body for word in i]
        return struct.pack(f"<{len(words)}I", *words)

    def new_id(self):
        self.header[3] += 1
        return self.header[3] - 1

    def is_fma(self, i):
        return opcode(i) == EXT_INST and i[3] == self.glsl and i[4] == FMA

    def arithmetic(self):
        return [i for i in self.body if opcode(i) in ARITHMETIC or self.is_fma(i)]

    def sealed(self):
        return {i[1] for i in self.body if opcode(i) == DECORATE and i[2] == NO_CONTRACTION}

    def declare(self, code, *operands):
        """The id of a type; it is made if the module has none like it."""
        for i in self.body:
            if opcode(i) == code and i[2:] == list(operands):
                return i[1]
        return self.insert(lambda new: instruction(code, new, *operands))

    def constant(self, of_type, value):
        for i in self.body:
            if opcode(i) == CONSTANT and [i[1], *i[3:]] == [of_type, value]:
                return i[2]
        return self.insert(lambda new: instruction(CONSTANT, of_type, new, value))

    def insert(self, made):
        new = self.new_id()
        first_function = next(k for k, i in enumerate(self.body) if opcode(i) == FUNCTION)
        self.body.insert(first_function, made(new))
        return new


def sums(module):
    return [i for i in module.body if opcode(i) in (F_ADD, F_SUB)]


def pointer_to_one(module):
    """(variable, index, pointer type, f32) of the push constants' first member."""
    block = next((i for i in module.body if opcode(i) == VARIABLE and i[3] == PUSH_CONSTANT), None)
    if block is None:
        raise Failure("a module that adds floats needs push constants that begin with float one")
    struct_id = next(i[3] for i in module.body
                     if opcode(i) == TYPE_POINTER and i[1] == block[1])
    names = {i[2]: text_of(i[3:]) for i in module.body
             if opcode(i) == MEMBER_NAME and i[1] == struct_id}
    if names.get(0) != "one":
        raise Failure(f"the push constants begin with \"{names.get(0)}\"; that must be float one")
    f32 = module.declare(TYPE_FLOAT, 32)
    index = module.constant(module.declare(TYPE_INT, 32, 0), 0)
    return block[2], index, module.declare(TYPE_POINTER, PUSH_CONSTANT, f32), f32


def load_one(module, place, widths, has_minus):
    """Instructions that load one, and its id and that of its negative by width of float."""
    variable, index, pointer, f32 = place
    address, loaded = module.new_id(), module.new_id()
    code = [instruction(ACCESS_CHAIN, pointer, address, variable, index),
            instruction(LOAD, f32, loaded, address)]
    plus, minus = {}, {}
    for width in widths:
        kind = next(i for i, bits in module.floats.items() if bits == width)
        plus[width] = loaded
        if width != 32:
            plus[width] = module.new_id()
            code.append(instruction(F_CONVERT, kind, plus[width], loaded))
        if has_minus:
            minus[width] = module.new_id()
            code.append(instruction(F_NEGATE, kind, minus[width], plus[width]))
    return code, plus, minus


def without_sums(module, function, place):
    """The function with an fma in the place of every sum."""
    own = [i for i in function if opcode(i) in (F_ADD, F_SUB)]
    if not own:
        return function
    for i in own:
        if i[1] not in module.floats:
            raise Failure("a sum of vectors cannot be sealed; write it in scalars")
    start = next(k for k, i in enumerate(function) if opcode(i) == LABEL) + 1
    while opcode(function[start]) in (VARIABLE, LINE, NO_LINE):
        start += 1
    widths = sorted({module.floats[i[1]] for i in own})
    code, plus, minus = load_one(module, place, widths, any(opcode(i) == F_SUB for i in own))
    result = function[:start] + code
    for i in function[start:]:
        if opcode(i) not in (F_ADD, F_SUB):
            result.append(i)
            continue
        width = module.floats[i[1]]
        factors = ([i[3], plus[width], i[4]] if opcode(i) == F_ADD
                   else [i[4], minus[width], i[3]])
        result.append(instruction(EXT_INST, i[1], i[2], module.glsl, FMA, *factors))
    return result


def seal(data):
    module = Module(data)
    if sums(module):
        if not module.glsl:
            raise Failure("the module does not import GLSL.std.450, which has fma")
        place = pointer_to_one(module)
        first = next(k for k, i in enumerate(module.body) if opcode(i) == FUNCTION)
        code, functions = module.body[first:], []
        while code:
            end = next(k for k, i in enumerate(code) if opcode(i) == FUNCTION_END) + 1
            functions += without_sums(module, code[:end], place)
            code = code[end:]
        module.body[first:] = functions
    sealed = module.sealed()
    at = next(k for k, i in enumerate(module.body)
              if opcode(i) in FIRST_OF_DECORATIONS or opcode(i) in TYPES)
    module.body[at:at] = [instruction(DECORATE, i[2], NO_CONTRACTION)
                          for i in module.arithmetic() if i[2] not in sealed]
    return module.pack()


def check(data):
    """Sentences about what is wrong; none if the module is sealed."""
    module, problems = Module(data), []
    sealed = module.sealed()
    open_results = [i for i in module.arithmetic() if i[2] not in sealed]
    if open_results:
        problems.append(f"{len(open_results)} floating-point results are not sealed")
    if sums(module):
        problems.append(f"{len(sums(module))} sums could be contracted with a product")
    variables = [i for i in module.body if opcode(i) == VARIABLE and i[3] == FUNCTION_STORAGE]
    if variables:
        problems.append(f"{len(variables)} variables of functions are in memory; index arrays by "
                        "constants and unroll their loops")
    return problems


def number(value):
    """In bytes of 7 bits, the lowest first."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes(digits) + bytes([value])


def difference(value):
    """A difference of words, small if it is near 0: 0, -1, 1, -2, …"""
    value &= 0xffffffff
    return number(2 * value if value < 1 << 31 else 2 * ((1 << 32) - value) - 1)


def packed(data, streams):
    """Appends a module to four streams that a wheel's compression makes short: heads of instructions,
    types, results and other operands. Ids are differences from the latest result, as most are near."""
    heads, types, results, others = streams
    module, latest = Module(data), 0
    others += b"".join(map(number, module.header))
    for i in module.body:
        code = opcode(i)
        place = 0 if code in NO_RESULT else 1 if code in RESULT_FIRST else 2  # of the result
        place = min(place, len(i) - 1)
        heads += number(4 * code + place) + number(len(i) - 1)
        for k, word in enumerate(i[1:], start=1):
            if k < place:
                types += number(word)
            elif k == place:
                results += difference(word - latest - 1)
                latest = word
            else:
                others += difference(latest - word)


def embed(named):
    """C++ that defines gpu::vulkan::embedded_modules()."""
    streams, rows = [bytearray() for _ in range(4)], []
    for name, data in sorted(named.items()):
        places = ", ".join(f"kStream{k} + {len(stream)}" for k, stream in enumerate(streams))
        rows.append(f'      {{"{name}", {{{places}}}, {len(data) // 4}}},')
        packed(data, streams)
    lines = ["// Written by scripts/seal.py.", '#include "src/gpu/vulkan/module.h"', "",
             "namespace similis::gpu::vulkan {", "namespace {", ""]
    for k, stream in enumerate(streams):
        lines.append(f"const unsigned char kStream{k}[] = {{")
        lines += ["    " + ",".join(map(str, stream[i:i + 24])) + "," for i in
                  range(0, len(stream), 24)]
        lines.append("};")
    lines += ["", "}  // namespace", "",
              "std::span<const EmbeddedModule> embedded_modules() {",
              "  static const EmbeddedModule modules[] = {", *rows, "  };", "  return modules;", "}",
              "", "}  // namespace similis::gpu::vulkan", ""]
    return "\n".join(lines)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main(command, *arguments):
    try:
        if command == "seal":
            with open(arguments[1], "wb") as file:
                file.write(seal(read(arguments[0])))
        elif command == "check":
            problems = check(read(arguments[0]))
            if problems:
                raise Failure("; ".join(problems))
        elif command == "embed":
            named = dict(argument.split("=", 1) for argument in arguments[1:])
            with open(arguments[0], "w", encoding="utf-8") as file:
                file.write(embed({name: read(path) for name, path in named.items()}))
        else:
            raise Failure(f"there is no command {command}; see the top of seal.py")
    except Failure as failure:
        sys.exit(f"seal.py {command} {arguments[0] if arguments else ''}: {failure}")


if __name__ == "__main__":
    main(*sys.argv[1:])
