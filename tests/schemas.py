"""Holds what commands print against the published schemas."""

import json
from functools import cache

from jsonschema import Draft202012Validator

from peaksight.cli.schemas import published_schema


@cache
def validator_of(name):
    """Of the schema `name`, as `peaksight.report/1`."""
    return Draft202012Validator(json.loads(published_schema(name)))


def validated(found, name=None):
    """`found`, which follows the schema that it names, or `name` where it says none; of an array each answer does."""
    for each in found if name is None and isinstance(found, list) else [found]:
        validator_of(name or each["schema"]).validate(each)
    return found
