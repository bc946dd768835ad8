"""Sequences whose items are made when they are asked for: all of a large cluster's would fill the memory."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class Lazy(Sequence[T_co]):
    """What a sequence needs beside `__len__` and `_at`. Equal to any sequence of equal items."""

    __slots__ = ()

    @abstractmethod
    def _at(self, index: int) -> T_co:
        """The item at a place from 0 to the last."""

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        if isinstance(index, slice):
            return tuple([self._at(each) for each in range(len(self))[index]])
        return self._at(range(len(self))[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))
