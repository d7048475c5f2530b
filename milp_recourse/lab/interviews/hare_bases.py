"""The base recourses of HARE's experiments, for all people of a cell: four more than HARE's own two.

CARLA 0.0.5, which has all six, asks for tensorflow 1.14 and torch 1.7 and installs on no Python that this
package supports; jax-relax has two of the four and was last kept for keras 3.3. So each is written here by
its paper's definition. As in CARLA, FACE, CLUE and CRUDS know nothing of what people can act on.

References
----------
FACE: Poyiadzi et al. (2020), https://arxiv.org/abs/1909.09369; the others at
:mod:`milp_recourse.lab.interviews.hare_codes`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from milp_recourse.lab.interviews.hare_people import Crowd, Study
from milp_recourse.preferences.hare import FloatArray, growing_spheres, wachter

BASES = ("wachter", "growing-spheres", "face", "cchvae", "clue", "cruds")


def base_points(base: str, found: Study, seed: int) -> FloatArray:
    """A recourse for each person, (n, 1, d); nan for whom the method finds none."""
    crowd, rng = found.crowd, np.random.default_rng([seed, 7])
    if base == "wachter":
        points = wachter(crowd)
        points = np.full_like(crowd.start, np.nan) if points is None else points
    elif base == "growing-spheres":
        points = np.full_like(crowd.start, np.nan)
        for k in range(crowd.size):
            one = growing_spheres(crowd.only([k]), rng)
            points[k, 0] = np.nan if one is None else one
    elif base == "face":
        points = face(crowd, found.seen[:1500], found.accepted[:1500])
    else:
        points = _by_codes(base, found, seed, rng)
    return np.where((crowd.score(points) > 0)[..., None], points, np.nan)


def _by_codes(base: str, found: Study, seed: int, rng: np.random.Generator) -> FloatArray:
    import torch

    from milp_recourse.lab.interviews.hare_codes import autoencoder, cchvae, clue, cruds

    torch.manual_seed(seed)
    if base == "cchvae":
        return cchvae(found.crowd, autoencoder(found.seen, found.crowd.free), rng)
    if base == "clue":
        return clue(found.crowd, autoencoder(found.seen))
    return cruds(found.crowd, autoencoder(found.seen, labels=found.accepted))


def face(crowd: Crowd, seen: FloatArray, accepted: Any, neighbours: int = 50) -> FloatArray:
    """FACE: the accepted row at the end of the shortest path from x through rows that are among each other's
    nearest; an edge is as long as its rows are far from each other (a constant density)."""
    from scipy.sparse.csgraph import dijkstra
    from sklearn.neighbors import kneighbors_graph

    people = crowd.start[:, 0]
    rows = np.concatenate([people, seen])
    graph = kneighbors_graph(rows, min(neighbours, len(rows) - 1), mode="distance")
    graph.data += 1e-12  # an edge of length 0 would be no edge
    length = dijkstra(graph.maximum(graph.T), indices=np.arange(len(people)))[:, len(people) :]
    length = np.where(accepted, length, np.inf)
    ends = seen[length.argmin(axis=1)]
    return np.where(np.isfinite(length.min(axis=1))[:, None], ends, np.nan)[:, None, :]
