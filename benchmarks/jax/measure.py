"""Measures a script under JAX on a real card: `python measure.py gpt.py --batch 8` prints one line of JSON.

The bytes in use and their peak, by JAX's own `memory_stats`, after each call of a jitted function of the script, with
growing regions instead of one pool, so that the peak is not that of the pool.
"""

import json
import os
import runpy
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax


def main() -> None:
    """Run the script that the arguments name, and print what it took."""
    device, calls, jit = jax.devices()[0], [], jax.jit

    def note(name):
        stats = device.memory_stats() or {}
        calls.append([name, *map(stats.get, ("bytes_in_use", "peak_bytes_in_use", "largest_alloc_size"))])

    def noting(function=None, **options):
        if function is None:
            return lambda given: noting(given, **options)
        jitted = jit(function, **options)
        name = getattr(function, "__name__", "")

        class Noting:
            def __call__(self, *args, **kwargs):
                result = jax.block_until_ready(jitted(*args, **kwargs))
                note(name)
                return result

            def __getattr__(self, attribute):
                return getattr(jitted, attribute)

        return Noting()

    jax.jit = noting
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    jax.jit = jit
    stats = device.memory_stats() or {}
    from jax._src.lib import xla_client

    topology = xla_client.get_topology_for_devices(jax.devices()) if stats else None
    print(
        json.dumps(
            {
                "argv": sys.argv,
                "card": device.device_kind,
                "jax": jax.__version__,
                "measured_peak_bytes": stats.get("peak_bytes_in_use"),
                "calls": calls,
                "target_config": str(getattr(topology, "target_config", "")),
            }
        )
    )


if __name__ == "__main__":
    main()
