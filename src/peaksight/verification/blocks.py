"""Which block of a model a tensor belongs to."""


def block_of(name: str) -> str:
    """The path up to its first number, as in `transformer.h.3`; without one, the module that holds the tensor."""
    parts = name.split(".")
    for position, part in enumerate(parts):
        if part.isdecimal():
            return ".".join(parts[: position + 1])
    return ".".join(parts[:-1]) or name
