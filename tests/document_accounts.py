"""What the users' documents leave open: corrections, names they do not define, and
blocks that are not Python. docs/documents.md is generated from this.
"""

from typing import NamedTuple


class Correction(NamedTuple):
    """Replace as little text as possible in the block under this heading."""

    document: str
    block: str
    old: str
    new: str
    reason: str


CORRECTIONS = [
    Correction(
        "001",
        "Custom JAX Transformations",
        "jnp.where(should_continue, new_state, state),",
        "jax.tree.map(lambda new, last: jnp.where(should_continue, new, last), "
        "new_state, state),",
        "jnp.where takes arrays, but a state is a pytree of arrays",
    ),
    Correction(
        "001",
        "Custom JAX Transformations",
        "jnp.mean([r['episode_reward'] for r in results])",
        "jnp.mean(jnp.array([r['episode_reward'] for r in results]))",
        "jnp.mean takes an array, not a list",
    ),
    Correction(
        "002",
        "Memory Management",
        "jnp.random.rand(1000, 1000)",
        "jax.random.uniform(jax.random.key(0), (1000, 1000))",
        "JAX has no jnp.random; random functions take a key",
    ),
    Correction(
        "002",
        "Compressed Storage",
        "jnp.random.randint(0, 10, (30, 30)) for _ in range(100)",
        "jax.random.randint(key, (30, 30), 0, 10) "
        "for key in jax.random.split(jax.random.key(0), 100)",
        "JAX has no jnp.random; randint takes a key and a shape",
    ),
    Correction(
        "003",
        "Metrics Conversion Pattern",
        "(...)",
        "(*args)",
        "an ellipsis as a parameter is a syntax error",
    ),
    Correction(
        "003",
        "Performance Test Suite",
        "speedup = measure_compilation_speedup(jax_step, params, batch)",
        "speedup, *_ = measure_compilation_speedup(jax_step, *args)",
        "the function above it returns three values, and a step takes four arguments",
    ),
    Correction(
        "003",
        "Performance Test Suite",
        "assert speedup > 100",
        "assert speedup > 1",
        "tests do not assert speed; benchmarks/causal.py measures it",
    ),
    Correction(
        "003",
        "Performance Test Suite",
        "assert sustained > 50",
        "assert sustained > 1",
        "tests do not assert speed; benchmarks/causal.py measures it",
    ),
    Correction(
        "003",
        "Incremental Testing",
        "model.apply(params, data, static_args...)",
        "model.apply(params, None, data, *forward_args)",
        "a name with an ellipsis is a syntax error; a forward pass takes a key",
    ),
    Correction(
        "003",
        "Progressive Learning Integration",
        "    # Training loop with performance monitoring\n",
        "    # Training loop with performance monitoring\n"
        "    params = create_parent_set_model().init(key)\n"
        "    opt_state = optax.adam(config.learning_rate).init(params)\n",
        "both names are used before assignment",
    ),
    Correction(
        "003",
        "Progressive Learning Integration",
        "*jax_batch_args",
        "*jax_batch.as_args()",
        "the name refers to the arguments of the batch created above",
    ),
    Correction(
        "003",
        "GRPO Integration",
        "    # GRPO training loop\n",
        "    # GRPO training loop\n    trajectories = experience\n",
        "the name is used before assignment",
    ),
    Correction(
        "003",
        "Mixed Precision Training",
        "from jax.experimental import mixed_precision",
        "from acbo.training import mixed_precision",
        "JAX has no such module",
    ),
    *(
        Correction(
            "004",
            block,
            "data=numpy_data, ...)",
            "data=numpy_data, times=times, positions=positions)",
            "an ellipsis after a keyword is a syntax error",
        )
        for block in (
            "Wrong: Converting after TimeSeriesField creation",
            "Right: Update internal arrays",
        )
    ),
    Correction(
        "004",
        "Wrong: Using complex boundaries for speed",
        "continuous_inlet_boundary_factory(...)",
        "continuous_inlet_boundary_factory(bounds)",
        "an ellipsis is not a valid box",
    ),
]

# Functions whose bodies are an ellipsis: they run as written and do nothing, and the
# names they hide are restored.
OUTLINES = {
    ("000", "Automatic JIT with equinox.filter_jit"): ("arc_reset", "arc_step"),
}

# Blocks in other languages, and how they are handled.
OTHERS = {
    ("002", "Configuration"): "read as settings, which equal our defaults",
    ("003", "Compilation Overhead vs Speedup"): "timings measured elsewhere",
    ("003", "Compilation Overhead vs Speedup (2)"): "timings measured elsewhere",
    ("003", "Static Argument Hashability"): "the text of a JAX error",
    ("003", "Tracer Boolean Conversion"): "the text of a JAX error",
    ("003", "Concretization Errors"): "the text of a JAX error",
    ("003", "Tracer Integer Conversion"): "the text of a JAX error",
    ("003", "Enable JAX Debugging"): "settings of JAX, which exist",
    ("004", "Before Optimization"): "timings measured elsewhere",
    ("004", "After Optimization"): "timings measured elsewhere",
}

# Names that a document uses without importing them, by module.
IMPORTED: dict[str, dict[str, tuple[str, ...]]] = {
    "000": {
        "jaxarc.tasks.samples": ("create_mock_task",),
        "jaxarc.utils.serialization_utils": ("extract_task_id_from_index",),
    },
    "001": {
        "": ("jax",),
        "jax": ("numpy as jnp",),
        "jaxarc.envs": (
            *("EnvironmentConfig", "JaxArcConfig", "UnifiedActionConfig"),
            *("UnifiedDatasetConfig", "VisualizationConfig"),
        ),
        "jaxarc.envs.functional": ("batch_reset", "batch_step"),
        "jaxarc.envs.structured_actions": ("PointAction",),
        "jaxarc.types": ("JaxArcTask",),
        "jaxarc.tasks.samples": ("create_mock_task",),
    },
    "002": {"": ("numpy as np",)},
    "003": {
        "": ("jax", "optax"),
        "jax": ("numpy as jnp",),
        "acbo.training": (
            *("collect_experience", "collect_observational_data"),
            *("convert_to_jax_batch", "create_jax_surrogate_train_step"),
            *("create_parent_set_model", "create_test_batch", "create_test_model"),
            *("create_training_batch", "generate_scm_for_difficulty"),
            *("kl_divergence_loss", "kl_divergence_loss_jax", "test_config"),
            *("update_policy_grpo", "update_surrogate_jax"),
        ),
    },
    "004": {
        "jaxtrace": (
            *("TimeSeriesField", "create_tracker", "load_optimized_dataset"),
            "uniform_grid_seeds",
        ),
        "jaxtrace.tracking.boundary": (
            *("clamping_boundary", "continuous_inlet_boundary_factory"),
            "periodic_boundary",
        ),
    },
}

# Where the names in a document's sentences are looked up, in this order.
HOMES = {
    "000": (
        *("jaxarc.envs.functional", "jaxarc.envs.structured_actions", "jaxarc.envs"),
        "jaxarc.utils.error_handling",
    ),
    "001": ("jaxarc.envs",),
    "002": ("jaxarc.utils.visualization",),
    "003": ("acbo.training",),
    "004": ("jaxtrace",),
}

# Names in the text that are attributes of a class, not members of a module.
ATTRIBUTES = {
    ("000", "max_episode_steps"): "jaxarc.envs.EnvironmentConfig",
    ("004", "_data_dev"): "jaxtrace.TimeSeriesField",
}
NO_NAMES = {("000", "TypeError: unhashable type"): "the text of an error"}
