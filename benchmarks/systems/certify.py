"""`python -m benchmarks.systems.certify [NAME...]` verifies the variants at the small scale: certificates.json."""

import json
import shlex
import subprocess
import sys
from typing import Any

from benchmarks.systems.cases import CERTIFICATES, Case, all_cases

_NO_ANSWER = 2


def main(names: list[str]) -> None:
    """Certify all, or those of `names`; what is done is written at once."""
    known = json.loads(CERTIFICATES.read_text()) if CERTIFICATES.exists() else {}
    for case in all_cases():
        if not names or case.name in names:
            known[case.name] = {pair: verdict_of(case, pair) for pair in case.certificates}
            CERTIFICATES.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def verdict_of(case: Case, pair: str) -> dict[str, Any]:
    """The verdict on one pair, and what decided it; without an answer the message."""
    certificate = certify(case, pair)
    print(case.name, pair, certificate["verdict"], file=sys.stderr, flush=True)
    return {key: certificate[key] for key in ("verdict", "noise", "reasons", "worst") if key in certificate}


def certify(case: Case, pair: str) -> dict[str, Any]:
    """The certificate as JSON; "no answer" is a verdict of its own, with the message as its reason."""
    words = case.certificates[pair]
    script = [*shlex.split(words.launcher), "train.py"]
    original = shlex.join([*script, *shlex.split(words.original)])
    options = [*shlex.split(words.options), "--json", "-", "--against", original]
    command = [sys.executable, "-m", "peaksight", "verify", *options, *script, *shlex.split(words.changed)]
    done = subprocess.run(command, cwd=case.script.parent, capture_output=True, text=True, check=False)
    if done.returncode == _NO_ANSWER:
        return {"verdict": "no answer", "reasons": [(done.stderr.strip().splitlines() or [""])[-1]]}
    return json.loads(done.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
