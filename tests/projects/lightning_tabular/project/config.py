"""Reads a YAML file into a nested configuration, with `section.key=value` changes from the command line."""

import argparse

import yaml


def load_config(argv=None):
    parser = argparse.ArgumentParser(description="Train a classifier of table rows.")
    parser.add_argument("--config", required=True)
    parser.add_argument("overrides", nargs="*", help="such as model.width=512")
    args = parser.parse_args(argv)
    with open(args.config) as f:
        config = yaml.safe_load(f)
    for override in args.overrides:
        path, value = override.split("=")
        *sections, key = path.split(".")
        section = config
        for name in sections:
            section = section[name]
        section[key] = yaml.safe_load(value)
    return config
