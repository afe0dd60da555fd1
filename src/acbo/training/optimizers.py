"""The optimizer of our own training loops: warm-up, cosine decay, decoupled decay."""

import optax

from acbo.training.objective import MAX_GRADIENT_NORM

FLOOR = 0.01  # first and last learning rate, as a share of the peak
LONGEST_WARMUP = 1000


def warmup_of(total_steps: int) -> int:
    """Steps of warm-up: a tenth of all, at most 1000."""
    return min(LONGEST_WARMUP, total_steps // 10)


def create_schedule(
    peak: float, total_steps: int, warmup_steps: int | None = None
) -> optax.Schedule:
    """From 1 % up to the peak, then along a cosine down to 1 %."""
    warmup = warmup_of(total_steps) if warmup_steps is None else warmup_steps
    if not 0 <= warmup < total_steps:
        raise ValueError(f"warmup_steps={warmup} must be in [0, {total_steps})")
    return optax.warmup_cosine_decay_schedule(
        FLOOR * peak, peak, warmup, total_steps, FLOOR * peak
    )


def create_optimizer(
    learning_rate: float,
    total_steps: int,
    weight_decay: float = 1e-4,
    warmup_steps: int | None = None,
) -> optax.GradientTransformation:
    """AdamW after clipping to global norm 1, on the schedule; steps report its rate.

    It decays weights itself: give the step `l2_in_loss=False`.
    """
    schedule = create_schedule(learning_rate, total_steps, warmup_steps)
    adamw = optax.inject_hyperparams(optax.adamw, static_args=("weight_decay",))
    return optax.chain(
        optax.clip_by_global_norm(MAX_GRADIENT_NORM),
        adamw(learning_rate=schedule, weight_decay=weight_decay),
    )
