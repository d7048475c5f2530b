"""Files of trained networks: arrays and one JSON text in an .npz, which cannot run code when it is read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import write_whole
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.refine import Demands
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.structural import StructuralModel

FORMAT = "milp-recourse/icarma-1"


def write_arrays(path: Path, arrays: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Write arrays and a JSON object ``about`` them to an .npz file, completely or not at all."""
    content = BytesIO()
    np.savez_compressed(content, about=np.array(json.dumps(dict(about))), **arrays)
    write_whole(content.getvalue(), path)


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays, and the JSON object about them, that :func:`write_arrays` wrote.

    Raises
    ------
    BadInput
        There is no such file, or it was not written by :func:`write_arrays`.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
    except FileNotFoundError:
        raise BadInput(str(path), "no such file", "a checkpoint that icarma train wrote") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise BadInput(str(path), "not a checkpoint", "an .npz that icarma train wrote") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise BadInput(str(path), "another format", FORMAT)
    return arrays, about


def flow_content(flow: CausalFlow | StructuralModel) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A flow's weights as arrays ``flow.*``, and its settings; a structural model has no weights."""
    arrays = {f"flow.{k}": v.detach().cpu().numpy() for k, v in flow.state_dict().items()}
    return arrays, flow.settings


def flow_of(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> CausalFlow:
    """The inverse of :func:`flow_content` for a flow."""
    flow = CausalFlow(**settings)
    flow.load_state_dict(tensors(arrays, "flow."))
    return flow


def tensors(arrays: Mapping[str, np.ndarray], start: str) -> dict[str, Tensor]:
    """The arrays whose names begin with ``start``, as tensors named without it."""
    return {k.removeprefix(start): torch.as_tensor(v) for k, v in arrays.items() if k.startswith(start)}


def write_recommender(model: Recommender, path: Path, notes: Mapping[str, Any]) -> None:
    """Write networks, flow and everything that prediction needs.

    Parameters
    ----------
    notes
        A JSON object to store with them, such as the results in validation.
    """
    arrays, flow = flow_content(model.flow)
    arrays |= {f"best.{k}": v.detach().cpu().numpy() for k, v in model.state().items()}
    about = {
        "format": FORMAT,
        "kind": "recommender",
        "flow": flow,
        "levers": list(model.levers),
        "bounds": model.bounds.tolist(),
        "settings": model.settings.as_json(),
        "notes": dict(notes),
    }
    if model.demands:
        content, about["demands"] = model.demands.content()
        arrays |= content
    write_arrays(path, arrays, about)


def read_recommender(path: Path) -> tuple[Recommender, dict[str, Any]]:
    """The networks, and the notes, that :func:`write_recommender` wrote.

    Raises
    ------
    BadInput
        The file was not written by it, or is damaged.
    """
    arrays, about = read_arrays(path)
    if about.get("kind") != "recommender":
        raise BadInput(str(path), about.get("kind"), "a checkpoint with trained networks")
    try:
        settings = Settings.of_json(about["settings"])
        content = about["flow"]
        flow = StructuralModel.of_settings(content) if "scm" in content else flow_of(arrays, content)
        demands = Demands.of_content(arrays, about["demands"]) if settings.steps else None
        model = Recommender(flow, about["levers"], about["bounds"], settings, demands)
        model.load(tensors(arrays, "best."))
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise BadInput(str(path), f"a damaged checkpoint ({error})", "one that icarma train wrote") from None
    return model.eval(), about["notes"]
