"""Makes vectors.json: the maths of phase vectors once more, with nothing but the standard library.

Run it as `python3 make.py > vectors.json`. It shares no code with the crate, so that the two can be
compared.
"""

import hashlib
import json
import math
import struct

DIMENSION = 1024
TAU = 2 * math.pi
PUNCTUATION = ".,;:!?\"'()[]{}<>`«»“”„‘’…—–-*_~|/\\、。「」"


def atom(word):
    numbers = []
    index = 0
    while len(numbers) < DIMENSION:
        digest = hashlib.sha256(f"{word}:{index}".encode()).digest()
        numbers.extend(struct.unpack("<16H", digest))
        index += 1
    return [number * (TAU / 65536) for number in numbers[:DIMENSION]]


def bind(one, other):
    return [(a + b) % TAU for a, b in zip(one, other)]


def unbind(bound, key):
    return [(a - b) % TAU for a, b in zip(bound, key)]


def bundle(vectors):
    angles = []
    for column in zip(*vectors):
        total = sum(complex(math.cos(angle), math.sin(angle)) for angle in column)
        # The angle of a sum near zero would depend on the last bits: choose other words then.
        assert abs(total) > 1e-4, abs(total)
        angles.append(math.atan2(total.imag, total.real) % TAU)
    return angles


def similarity(one, other):
    return sum(math.cos(a - b) for a, b in zip(one, other)) / DIMENSION


def tokens(text):
    stripped = (piece.strip(PUNCTUATION) for piece in text.lower().split())
    return [piece for piece in stripped if piece]


def text(words):
    atoms = [atom(token) for token in tokens(words)]
    return bundle(atoms) if atoms else atom("EMPTY")


def fact(words, entities):
    parts = [bind(text(words), atom("ROLE_CONTENT"))]
    parts += [bind(atom(" ".join(name.lower().split())), atom("ROLE_ENTITY")) for name in entities]
    return bundle(parts)


SENTENCE = "Ada Lovelace wrote the first program, for a machine that was never built."
OTHER = "The first program was written by Ada Lovelace!"
NAMES = ["Ada Lovelace", "Analytical  Engine"]

VECTORS = {
    "atom ada": atom("ada"),
    "atom größe": atom("größe"),
    "bind ada rust": bind(atom("ada"), atom("rust")),
    "unbind ada rust": unbind(atom("ada"), atom("rust")),
    "bundle ada rust sea": bundle([atom("ada"), atom("rust"), atom("sea")]),
    "text": text(SENTENCE),
    "text of nothing": text(" … - "),
    "fact": fact(SENTENCE, NAMES),
}
SIMILARITIES = {
    "ada ada": similarity(atom("ada"), atom("ada")),
    "ada rust": similarity(atom("ada"), atom("rust")),
    "ada bundle": similarity(atom("ada"), VECTORS["bundle ada rust sea"]),
    "text other": similarity(VECTORS["text"], text(OTHER)),
    "fact entity": similarity(VECTORS["fact"], bind(atom("ada lovelace"), atom("ROLE_ENTITY"))),
    "fact content": similarity(VECTORS["fact"], bind(VECTORS["text"], atom("ROLE_CONTENT"))),
    "fact stranger": similarity(VECTORS["fact"], bind(atom("grace hopper"), atom("ROLE_ENTITY"))),
}

if __name__ == "__main__":
    lines = [
        f'    {json.dumps(name, ensure_ascii=False)}: [{", ".join(f"{angle:.14f}" for angle in angles)}]'
        for name, angles in VECTORS.items()
    ]
    print('{\n  "vectors": {\n' + ",\n".join(lines) + "\n  },")
    print('  "similarities": ' + json.dumps(SIMILARITIES, indent=4, ensure_ascii=False) + "\n}")
