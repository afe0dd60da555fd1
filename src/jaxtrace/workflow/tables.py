"""The tables of a case and their defaults: what to track, through what, to where."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from jaxrig.devices import KINDS
from jaxrig.settings import (
    Checked,
    flag,
    known_only,
    maybe,
    number,
    one_of,
    some_of,
    text,
    whole,
    wrong,
)
from jaxrig.static_arguments import freeze, thaw
from jaxtrace import settings
from jaxtrace.analysis.density import BANDWIDTH_RULES, NORMALIZATIONS
from jaxtrace.analysis.sph import KERNELS
from jaxtrace.bounds import PLANES
from jaxtrace.fields.analytic import FLOWS, flow_parameters
from jaxtrace.fields.clock import EXTRAPOLATIONS, INTERPOLATIONS
from jaxtrace.fields.coast import SLIPS
from jaxtrace.integrators import METHODS
from jaxtrace.io.steps import TIME_SOURCES
from jaxtrace.settings import DTYPES, per_axis
from jaxtrace.sphere import GEOMETRIES
from jaxtrace.tracking import boundary
from jaxtrace.tracking.behaviors import SEA_WATER
from jaxtrace.tracking.motion import SCHEMES

Triple = tuple[Any, Any, Any]
Box = tuple[Triple, Triple]
Normalize = bool | str
NO_OPTIONS = freeze({})
STORES = ("zarr", "h5", "pvd")
EXPORTS = ("vtp", "series")  # by default; the rest are exported on request
FORMATS = (*EXPORTS, "nc", "csv", "parquet", "h5", "npz", "pvd")
ESTIMATES = ("kde", "sph")
PICTURES = ("particles", "trajectories", "density", "slice")
# Boundaries and arguments that are functions cannot be written in a file.
BOUNDARIES = {n: f for n, f in boundary.BOUNDARIES.items() if n != "distance"}
NOT_WRITTEN = ("inlet_particle_generator",)


def _normalize(value: Any, name: str) -> Normalize:
    if isinstance(value, bool):
        return value
    return one_of(*NORMALIZATIONS)(value, name)


@dataclass(frozen=True)
class Data(Checked):
    """Files with the velocity: a pattern, folder, collection, file or list of files."""

    section: ClassVar[str] = "data"
    pattern: Annotated[str | tuple[str, ...], settings.text_or_texts]
    max_timesteps_to_load: Annotated[int, whole()] = 40
    skip_initial_timesteps: Annotated[int, whole(0)] = 0
    use_stable_mesh_only: Annotated[bool, flag] = True
    velocity_name: Annotated[Any, maybe(settings.name_or_names)] = None
    time_range: Annotated[tuple[float, float] | None, maybe(settings.rising)] = None
    time_source: Annotated[str | None, maybe(one_of(*TIME_SOURCES))] = None
    time_scale: Annotated[float | None, maybe(number(0))] = None
    allow_nan: Annotated[bool, flag] = False
    interpolation: Annotated[str, one_of(*INTERPOLATIONS)] = "linear"
    extrapolation: Annotated[str | None, maybe(one_of(*EXTRAPOLATIONS))] = None
    outside: Annotated[str | None, maybe(text)] = None
    geometry: Annotated[str | None, maybe(one_of(*GEOMETRIES))] = None
    radius: Annotated[float | None, maybe(number(0))] = None
    velocity_units: Annotated[str | None, maybe(text)] = None
    land: Annotated[str | None, maybe(text)] = None
    slip: Annotated[str, one_of(*SLIPS)] = "none"


@dataclass(frozen=True)
class Flow(Checked):
    """A flow given by a formula, in place of files; other keys are its parameters."""

    section: ClassVar[str] = "flow"
    name: Annotated[str, one_of(*FLOWS)]
    parameters: Annotated[Any, settings.options] = NO_OPTIONS

    def __post_init__(self) -> None:
        super().__post_init__()
        names, label = flow_parameters(self.name), f"parameter of {self.name}"
        given = known_only(thaw(self.parameters), names, label)
        read = {k: number()(v, f"flow.{k}") for k, v in given.items()}
        object.__setattr__(self, "parameters", freeze(read))

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "Flow":
        """Return the name, and all other keys as parameters."""
        rest = {key: value for key, value in given.items() if key != "name"}
        if "name" not in given:
            raise ValueError(f"[flow] needs name: one of {', '.join(FLOWS)}")
        return cls(one_of(*FLOWS)(given["name"], "flow.name"), freeze(rest))

    def to_mapping(self) -> dict[str, Any]:
        """Return the name and the parameters side by side."""
        return {"name": self.name, **thaw(self.parameters)}


@dataclass(frozen=True)
class Particles(Checked):
    """Where particles start: counts per axis, how they are spread, and in what box."""

    section: ClassVar[str] = "particles"
    file: Annotated[str | None, maybe(text)] = None
    concentrations: Annotated[Triple, per_axis(whole())] = (60, 50, 15)
    distribution: Annotated[str, one_of("uniform", "gaussian", "random")] = "uniform"
    gaussian_std: Annotated[Triple, per_axis(number(0))] = (0.2, 0.2, 0.2)
    bounds: Annotated[Box | None, maybe(settings.box)] = None
    bounds_fraction: Annotated[Triple | None, maybe(settings.axis_fractions)] = None
    release: Annotated[Any, maybe(settings.release)] = None
    max_age: Annotated[float | None, maybe(number(0))] = None
    seed: Annotated[int, whole(0)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is not None and self.bounds_fraction is not None:
            raise ValueError("particles has bounds and bounds_fraction: give one")
        if self.file is not None and self.bounds is not None:
            raise ValueError("particles has file and bounds: give one")


@dataclass(frozen=True)
class Time(Checked):
    """The frames: how many over which span, and the longest step between them."""

    section: ClassVar[str] = "time"
    n_timesteps: Annotated[int | None, maybe(whole(2))] = None
    dt: Annotated[float | None, maybe(number(0))] = None
    use_data_dt: Annotated[bool, flag] = False
    time_span: Annotated[Any, maybe(settings.span)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_data_dt and self.n_timesteps is not None:
            raise ValueError(
                "time has use_data_dt and n_timesteps: frames are either as far apart "
                "as the slices or so many; give one"
            )


@dataclass(frozen=True)
class Tracking(Checked):
    """How particles are moved: the integrator, batches, precision and device."""

    section: ClassVar[str] = "tracking"
    integrator: Annotated[str, one_of(*METHODS)] = "rk4"
    batch_size: Annotated[int | None, maybe(whole())] = None
    recording_interval: Annotated[int, whole()] = 1
    record_velocities: Annotated[bool, flag] = False
    error_tolerance: Annotated[float | None, maybe(number(0))] = None
    dtype: Annotated[str, one_of(*DTYPES)] = "float32"
    device: Annotated[str, one_of(*KINDS)] = "auto"
    devices: Annotated[int | None, maybe(whole())] = None
    memory_limit_gb: Annotated[float, number(0)] = 8.0
    seed: Annotated[int, whole(0)] = 0


@dataclass(frozen=True)
class Boundary(Checked):
    """What happens at the ends of the domain: a type, and the arguments it takes."""

    section: ClassVar[str] = "boundary"
    type: Annotated[str, one_of(*BOUNDARIES)] = "channel"
    options: Annotated[Any, settings.options] = NO_OPTIONS

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"key in [boundary] of type {self.type!r}"
        given = known_only(thaw(self.options), self.arguments(), label)
        if "bounds" in given:
            given["bounds"] = settings.box(given["bounds"], "boundary.bounds")
        object.__setattr__(self, "options", freeze(given))

    def arguments(self) -> list[str]:
        """Return the keys that the type takes."""
        names = inspect.signature(BOUNDARIES[self.type]).parameters
        return [name for name in names if name not in NOT_WRITTEN]

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "Boundary":
        """Return the type, a channel by default, with the other keys as arguments."""
        rest = {key: value for key, value in given.items() if key != "type"}
        kind = given.get("type", "channel")
        return cls(one_of(*BOUNDARIES)(kind, "boundary.type"), freeze(rest))

    def to_mapping(self) -> dict[str, Any]:
        """Return the type and the arguments side by side."""
        return {"type": self.type, **thaw(self.options)}


def _number_or_name(value: Any, name: str) -> float | str:
    return text(value, name) if isinstance(value, str) else number()(value, name)


@dataclass(frozen=True)
class Motion(Checked):
    """More than going with the flow: a random walk, or inertia with drag."""

    section: ClassVar[str] = "motion"
    diffusivity: Annotated[Triple | None, maybe(per_axis(_number_or_name))] = None
    scheme: Annotated[str, one_of(*SCHEMES)] = "euler-maruyama"
    response_time: Annotated[float | None, maybe(number(0))] = None
    gravity: Annotated[Triple, per_axis(number())] = (0.0, 0.0, 0.0)


def _names(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise wrong(name, value, 'names in brackets, as in ["T", "p"]')
    return tuple(text(one, name) for one in value)


@dataclass(frozen=True)
class Sample(Checked):
    """Variables that are recorded along the paths: of the data, or of more files."""

    section: ClassVar[str] = "sample"
    variables: Annotated[tuple[str, ...], _names] = ()
    files: Annotated[tuple[str, ...], _names] = ()


@dataclass(frozen=True)
class Behave(Checked):
    """What particles do beside going with the flow, and what they remember.

    Speeds are in the units of the velocity, depths below z = 0.
    """

    section: ClassVar[str] = "behave"
    age: Annotated[bool, flag] = False
    history: Annotated[tuple[str, ...], _names] = ()
    sinking_speed: Annotated[float | None, maybe(number())] = None
    diameter: Annotated[float | None, maybe(number(0))] = None
    density: Annotated[float | None, maybe(number(0))] = None
    water_density: Annotated[float | str, _number_or_name] = SEA_WATER
    viscosity: Annotated[float, number(0)] = 1e-3
    windage: Annotated[float | None, maybe(number())] = None
    wind: Annotated[tuple[str, ...], _names] = ("u10", "v10")
    stokes_drift: Annotated[tuple[str, ...], _names] = ()
    wavenumber: Annotated[float | str | None, maybe(_number_or_name)] = None
    day_depth: Annotated[float | None, maybe(number())] = None
    night_depth: Annotated[float | None, maybe(number())] = None
    migration_speed: Annotated[float | None, maybe(number(0))] = None
    decay_time: Annotated[float | None, maybe(number(0))] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for keys in (("diameter", "density"), _MIGRATION):
            given = [key for key in keys if getattr(self, key) is not None]
            missing = [key for key in keys if key not in given]
            if given and missing:
                raise ValueError(
                    f"behave has {', '.join(given)} without {', '.join(missing)}: give "
                    "all of them"
                )
        if self.sinking_speed is not None and self.diameter is not None:
            raise ValueError(
                "behave has sinking_speed and diameter: a particle sinks by one of them"
            )


_MIGRATION = ("day_depth", "night_depth", "migration_speed")


@dataclass(frozen=True)
class Density(Checked):
    """Where particles are at the end: kernel estimates over a plane."""

    section: ClassVar[str] = "density"
    methods: Annotated[tuple[str, ...], some_of(*ESTIMATES)] = ESTIMATES
    plane: Annotated[str, one_of(*PLANES)] = "xy"
    slab_position: Annotated[float | None, maybe(number())] = None
    slab_thickness: Annotated[float | None, maybe(number(0))] = None
    resolution: Annotated[int, whole(2)] = 100
    kde_bandwidth: Annotated[float | None, maybe(number(0))] = None
    kde_bandwidth_rule: Annotated[str, one_of(*BANDWIDTH_RULES)] = "scott"
    kde_normalize: Annotated[Normalize, _normalize] = True
    sph_smoothing_length: Annotated[float | None, maybe(number(0))] = None
    sph_adaptive: Annotated[bool, flag] = False
    sph_n_neighbors: Annotated[int, whole()] = 32
    sph_kernel_type: Annotated[str, one_of(*KERNELS)] = "cubic_spline"
    sph_normalize: Annotated[Normalize, _normalize] = True


@dataclass(frozen=True)
class Pictures(Checked):
    """Which pictures to draw, and how the density across the flow is shown."""

    section: ClassVar[str] = "pictures"
    which: Annotated[tuple[str, ...], some_of(*PICTURES)] = PICTURES
    plane: Annotated[str, one_of(*PLANES)] = "xy"
    max_paths: Annotated[int, whole()] = 50
    color: Annotated[str | None, maybe(text)] = None
    slice_x0: Annotated[float | None, maybe(number())] = None
    slice_levels: Annotated[int, whole()] = 20
    slice_cutoff_min: Annotated[float, settings.percent] = 0.0
    slice_cutoff_max: Annotated[float, settings.percent] = 95.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.slice_cutoff_min < self.slice_cutoff_max:
            raise ValueError(
                f"pictures.slice_cutoff_min is {self.slice_cutoff_min}: give less than "
                f"slice_cutoff_max, {self.slice_cutoff_max}"
            )


@dataclass(frozen=True)
class FTLE(Checked):
    """The Lyapunov exponent of the flow over a plane, for `jaxrig trace ftle`."""

    section: ClassVar[str] = "ftle"
    t0: Annotated[float | None, maybe(number())] = None
    T: Annotated[float | None, maybe(number())] = None
    resolution: Annotated[int, whole(2)] = 200
    bounds: Annotated[Box | None, maybe(settings.box)] = None
    level: Annotated[float | None, maybe(number())] = None
    dt: Annotated[float | None, maybe(number(0))] = None


@dataclass(frozen=True)
class Output(Checked):
    """Where results go: the folder, the store that frames stream to, and exports."""

    section: ClassVar[str] = "output"
    folder: Annotated[str, text] = "out"
    store: Annotated[str, one_of(*STORES)] = "zarr"
    formats: Annotated[tuple[str, ...], some_of(*FORMATS)] = EXPORTS
    reports: Annotated[bool, flag] = True
    page: Annotated[bool, flag] = True
