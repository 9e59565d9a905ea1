# SPDX-License-Identifier: Apache-2.0
"""All ranks agree on a call's arguments before pixels move.

    with Agreement("ssim", slabs, padding="same") as agreement:
        agreement.array("x", x, slabs, axis=2)

gathers a hash of the arguments. If one rank's differ, or one rank refuses its own, all ranks
raise a ValueError that names the argument, and the group works on. Own rows are not compared.

A call that has work of its own to give to a GPU first agrees `later`: settle() gathers the hashes
before pixels move, while the GPU works.

`heard` tells the others if a function refuses something before its agreement begins, such as an
argument that it does not have.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Callable, Optional, TypeVar

import torch
from torch import Tensor

from .._library.schema import TABLES
from .._torch.tensors import is_transformed
from .failure import require_group, sends_from_cpu
from .gathering import gathered, gathered_objects
from .slabs import Slabs, require_slabs
from .transport import connect

Function = TypeVar("Function", bound=Callable[..., Any])
_agreed: set[tuple[Any, bytes]] = set()
_heard = 0  # agreements that have ended


class Agreement:
    def __init__(self, operation: str, slabs: Any, later: bool = False, **options: Any) -> None:
        if is_transformed():
            raise NotImplementedError(f"{operation}: torch.func and forward mode are not supported")
        require_slabs(operation, "slabs", slabs)  # without them there is nobody to agree with
        self.operation, self.slabs = operation, slabs
        self.entries: dict[str, Any] = {"slabs": list(slabs.sizes)}
        self.entries.update((name, _comparable(each)) for name, each in options.items())
        self._has_gpu_arrays = False
        self._is_later = later
        self._said: Any = None
        self._key: tuple[Any, bytes] = (None, b"")
        self._mine: Optional[Tensor] = None

    def array(
        self, name: str, tensor: Any, slabs: Slabs, axis: int, may_be_none: bool = False
    ) -> None:
        """Compares an array that lies in slabs along an axis, which may count from the end."""
        if tensor is None and may_be_none:
            self.entries[name] = None
            return
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is of type {type(tensor).__name__}; it must be a torch.Tensor")
        shape: list[Any] = list(tensor.shape)
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"{name} has shape {shape}; it has no axis {axis}")
        axis %= len(shape)
        if shape[axis] != slabs.sizes[slabs.rank]:
            rows = "1 row" if shape[axis] == 1 else f"{shape[axis]} rows"
            raise ValueError(
                f"{name} has shape {shape}, {rows} along axis {axis}; the slab of rank {slabs.rank} "
                f"has {slabs.sizes[slabs.rank]}"
            )
        shape[axis] = "rows"
        self._describe(name, tensor, shape)

    def whole(self, name: str, tensor: Any) -> None:
        """Compares an array that every rank holds whole, or None."""
        if tensor is None:
            self.entries[name] = None
        elif not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is of type {type(tensor).__name__}; it must be a torch.Tensor")
        else:
            self._describe(name, tensor, list(tensor.shape))

    def _describe(self, name: str, tensor: Tensor, shape: list[Any]) -> None:
        self._has_gpu_arrays |= tensor.is_cuda
        self.entries[name] = {
            "shape": shape,
            "dtype": str(tensor.dtype),
            "device": tensor.device.type,
            "gradient": tensor.requires_grad and torch.is_grad_enabled(),
        }

    def __enter__(self) -> Agreement:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        global _heard
        if kind is not None and not issubclass(kind, (ValueError, TypeError)):
            return
        _heard += 1
        noted = self.slabs.taken_beyond() if self.slabs.has_beyond_on_cpu() else None
        said = noted
        if error is not None:  # a loss refuses as its measure does
            said = str(error).removeprefix(f"{self.operation}: ")
            said = said.removeprefix(f"{self.operation.removesuffix('_loss')}: ")
            of_part, _, rest = said.partition(": ")  # an operation that this one is made of
            said = rest if of_part in TABLES or of_part == "histogram" else said
        digest = hashlib.sha256(repr((self.operation, self.entries, said)).encode()).digest()[:15]
        self._key, self._said = (self.slabs.group, digest), said
        if self._is_remembered() and said is None and self._key in _agreed:
            return
        self._mine = torch.tensor([*digest, int(said is not None)], dtype=torch.uint8, device="cpu")
        if error is not None or not self._is_later:
            self.settle()

    def _is_remembered(self) -> bool:
        """Over the CPU a gather costs the GPU nothing; a group of GPUs alone would wait for its
        stream."""
        return not sends_from_cpu(self.slabs.group)

    def settle(self) -> None:
        """Waits until all ranks have said what they call; raises on all what one refuses."""
        mine, self._mine = self._mine, None
        if mine is None:
            return
        every = gathered(self.slabs, mine)
        require_group(self.slabs)
        if all(torch.equal(each, every[0]) for each in every) and int(every[0][-1]) == 0:
            if self._is_remembered():
                _agreed.add(self._key)
            if self._has_gpu_arrays:
                connect(self.slabs)
            return
        self._refuse(self._said)

    def _refuse(self, said: Any) -> None:
        every = gathered_objects(self.slabs, (self.operation, self.entries, said))
        for rank, (operation, _, refusal) in enumerate(every):
            if refusal is not None:
                raise ValueError(f"{operation}: {refusal} (on rank {rank})") from None
        for rank, (operation, entries, _) in enumerate(every):
            first_operation, first, _ = every[0]
            if operation != first_operation:
                raise ValueError(
                    f"{operation}: rank {rank} calls it while rank 0 calls {first_operation}"
                )
            for name in sorted({*first, *entries}, key=str):
                if repr(first.get(name)) != repr(entries.get(name)):
                    raise ValueError(
                        f"{operation}: {name} is {_shown(first.get(name))} on rank 0 and "
                        f"{_shown(entries.get(name))} on rank {rank}; it must be alike on all ranks"
                    )
        raise ValueError(f"{self.operation}: the ranks' arguments differ")


def heard(function: Function) -> Function:
    """A function of slabs whose refusals all ranks hear of, also of what one rank gives wrongly before
    the function has begun to agree."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        before = _heard
        try:
            return function(*arguments, **options)
        except (ValueError, TypeError) as error:
            given = [each for each in (*arguments, *options.values()) if isinstance(each, Slabs)]
            if _heard != before or not given:
                raise
            with Agreement(function.__name__, given[0]):
                raise
        return None

    return call  # type: ignore[return-value]


def _comparable(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown(entry: Any) -> str:
    if isinstance(entry, dict):
        wants = "with" if entry["gradient"] else "without"
        return f"{entry['dtype']} {entry['shape']} on {entry['device']} {wants} gradient"
    return repr(entry)
