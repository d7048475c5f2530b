"""Whatever a file says, the reader returns a problem or one clear line."""

from __future__ import annotations

import copy
import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict, instance_to_dict, population_from_dict, scm_to_dict
from milp_recourse.formats.strict_json import parse_json
from milp_recourse.problem.loan import loan
from tests.helpers.format_samples import loan_instance, loan_population, tree_instance

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 0, 2**63, 10**40, 1e308, -1e-320, "", "income", "kind", "\x00", "\ud800", "école"]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(
        st.sampled_from(["sum", "kind", "path", "sha256", "name", "x"]), st.integers(), max_size=2
    ),
)


def samples():
    explicit = loan_instance()
    explicit["scm"] = scm_to_dict(loan(), explicit=True)
    return [loan_instance(), tree_instance(), explicit, loan_population()]


def mutate(data, rng: random.Random, odd) -> None:
    """Replace, drop, add or double one value at a random depth."""
    here = data
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(here[key], dict | list) and rng.random() < 0.8:
            here = here[key]
            continue
        deed = rng.randrange(4)
        if deed == 0:
            del here[key]
        elif deed == 1 and isinstance(here, dict):
            here[str(odd)] = here[key]
        elif deed == 2 and isinstance(here, list):
            here.insert(key, copy.deepcopy(here[key]))
        else:
            here[key] = odd
        return


@settings(max_examples=75, deadline=None)
@given(st.integers(0, 3), st.integers(0, 2**32), st.lists(ODD, min_size=1, max_size=3))
def test_mutated_problems_are_read_or_refused(which, seed, odds):
    """Nothing but BadInput, on one line; what is read can be written and read again."""
    data, rng = samples()[which], random.Random(seed)
    for odd in odds:
        mutate(data, rng, odd)
    build = population_from_dict if which == 3 else instance_from_dict
    try:
        value = parse_json(json.dumps(data).encode("utf-8"))
        problem = build(value)
    except BadInput as error:
        assert "\n" not in str(error) and ": got " in str(error)
        return
    if which != 3:
        written = instance_to_dict(problem)
        assert instance_to_dict(instance_from_dict(written)) == written


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(st.binary(max_size=60), st.text(alphabet='[]{}",:0123456789eE+-.naItruflsd\\ ', max_size=60))
)
def test_any_bytes_are_read_or_refused(content):
    """The JSON reader itself raises nothing else either."""
    try:
        parse_json(content if isinstance(content, bytes) else content.encode())
    except BadInput as error:
        assert "\n" not in str(error)
