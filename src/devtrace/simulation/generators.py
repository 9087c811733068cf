"""Random numbers. A device draws from the host's stream until a program gives it a state of its own.

Real CUDA has one stream per device. Here the values must be the CPU run's, whose numbers all come from the host's
stream. So a device whose state equals the host's *is* the host's stream: after `torch.manual_seed`, or when
checkpointing puts both states back. Only a device that was seeded or set to something else draws from its own.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch

from devtrace.runtime.patches import Call, Patches
from devtrace.simulation.devices import DEVICES, SimulatedDevice
from devtrace.simulation.stand_ins import stand_in
from devtrace.simulation.storage_tags import HOST, tag_of

_Generator = torch.Generator
_host = torch.default_generator


class DeviceGenerator(_Generator):
    """`torch.Generator(device="cuda")`: numbers as the host's generator of that seed makes them.

    `has_own_stream` is false of a device's default generator as long as it is the host's stream.
    """

    _device: torch.device
    _offset = 0  # of CUDA's counter, which the host's kind of generator has not
    _is_default = False
    has_own_stream = True

    def __new__(cls, device: torch.device, *, is_default: bool = False) -> Self:
        generator = _Generator.__new__(cls)
        generator._device, generator._is_default, generator.has_own_stream = device, is_default, not is_default
        _by_address[_address(generator)] = generator
        return generator

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self._device

    def get_offset(self) -> int:
        return self._offset

    def set_offset(self, offset: int) -> Self:
        self._offset = offset
        return self

    def get_state(self) -> torch.Tensor:
        return _Generator.get_state(self.source)

    def initial_seed(self) -> int:
        return _Generator.initial_seed(self.source)

    def set_state(self, new_state: torch.Tensor) -> Self:
        _check_state(new_state)
        _Generator.set_state(self, new_state)
        return self._after_new_state()

    def manual_seed(self, seed: int) -> Self:
        _Generator.manual_seed(self, seed)
        return self._after_new_state()

    def seed(self) -> int:
        self.has_own_stream = True
        return _Generator.seed(self)

    def clone_state(self) -> Any:
        return _rebuild(*self.__reduce__()[1])

    def __reduce__(self) -> Any:
        return _rebuild, (self.device, self.get_state(), self._offset)

    @property
    def source(self) -> torch.Generator:
        """Generator that a program draws from: the host's, until the device has its own."""
        return self if self.has_own_stream else _host

    def _after_new_state(self) -> Self:
        self._offset = 0
        if self._is_default:
            with torch._C._DisableTorchDispatch():  # it is not the program that compares
                self.has_own_stream = not torch.equal(_Generator.get_state(self), _host.get_state())
        return self


def install(patches: Patches) -> None:
    """Patch default generators, `torch.Generator(device=)`, and torch.manual_seed, which seeds all devices alike."""
    for device in DEVICES.simulated:
        device.generator = DeviceGenerator(device.device or torch.device("cuda"), is_default=True)
    defaults = tuple(device.generator for device in DEVICES.simulated)
    patches.set(torch.cuda, "default_generators", defaults)
    patches.set(torch._C, "_accelerator_getDefaultGenerator", defaults.__getitem__)
    patches.set(torch, "Generator", stand_in(_Generator, _make_generator))
    for owner in (torch, torch.random):
        patches.wrap(owner, "set_rng_state", _set_rng_state)
        patches.wrap(owner, "seed", _seed_all)
    patches.wrap(torch.random, "_manual_seed_impl", _seed_all)


def _seed_all(seed: Call, *args: Any, **kwargs: Any) -> Any:
    result = seed(*args, **kwargs)
    for device in DEVICES.simulated:
        device.generator.has_own_stream = False
    return result


def _set_rng_state(set_state: Call, new_state: torch.Tensor) -> None:
    _check_state(new_state)
    set_state(new_state)


def _check_state(state: Any) -> None:
    """Refuse, as `check_rng_state` of torch does, a state that is not on the CPU."""
    if isinstance(state, torch.Tensor) and tag_of(state).owner is not HOST and not DEVICES.are_one:
        raise TypeError("RNG state must be a torch.ByteTensor")


def _make_generator(device: Any = "cpu") -> torch.Generator:
    target = DEVICES.resolve(device)
    return DeviceGenerator(target) if target.type == "cuda" else _Generator(target)


def _rebuild(device: torch.device, state: torch.Tensor, offset: int = 0) -> Any:
    return torch.Generator(device).set_state(state).set_offset(offset)


def generator_for_cpu(value: Any, owner: SimulatedDevice | None) -> Any:
    """Return the generator that the CPU kernel may use for an operator on `owner`; raise for another device's."""
    if not isinstance(value, _Generator):
        return value
    generator = _by_address.get(_address(value), value)
    expected = "cpu" if owner is None or owner is HOST else "cuda"
    if generator.device.type != expected and not DEVICES.are_one:
        raise RuntimeError(f"Expected a '{expected}' device type for generator but found '{generator.device.type}'")
    return generator.source if isinstance(generator, DeviceGenerator) else value


def _address(generator: torch.Generator) -> int:
    address: int = generator._cdata  # type: ignore[attr-defined]
    return address


# A dispatch mode is handed a new Python object for the same C++ generator: known by the address of that.
_by_address: weakref.WeakValueDictionary[int, torch.Generator] = weakref.WeakValueDictionary()


@contextmanager
def own_stream(generator: DeviceGenerator) -> Iterator[None]:
    """Lend the host's generator the state of a device's own stream, while an operator of that device runs."""
    host_state = _host.get_state()
    _host.set_state(_Generator.get_state(generator))
    try:
        yield
    finally:
        _Generator.set_state(generator, _host.get_state())
        _host.set_state(host_state)
