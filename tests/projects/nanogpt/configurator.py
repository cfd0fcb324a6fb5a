"""Executed by train.py: `train.py config/words.py --batch_size=4` overrides its globals, in this order."""

import sys
from ast import literal_eval

for arg in sys.argv[1:]:
    if "=" not in arg:
        print(f"Overriding config with {arg}")
        exec(open(arg).read())  # noqa: SIM115
        continue
    key, val = arg.removeprefix("--").split("=")
    if key not in globals():
        raise ValueError(f"Unknown config key: {key}")
    try:
        attempt = literal_eval(val)
    except (SyntaxError, ValueError):
        attempt = val
    assert type(attempt) is type(globals()[key])
    print(f"Overriding: {key} = {attempt}")
    globals()[key] = attempt
