"""More items than fit at once: plan the batch, map in chunks, watch progress."""

import jax
import jax.numpy as jnp

from jaxrig import batch_keys, largest_batch, make_meter, map_chunked


def simulate(key, scale):
    """Largest excursion of a random walk of 10,000 steps."""
    return jnp.abs(jnp.cumsum(scale * jax.random.normal(key, (10_000,)))).max()


def simulate_batch(keys, scale):
    """The same for a batch of keys."""
    return jax.vmap(simulate, (0, None))(keys, scale)


scale = jnp.asarray(0.1)
plan = largest_batch(simulate_batch, jax.random.key(0), scale, budget_bytes=64 * 2**20)
print(f"{plan.batch_size:,} walks at once take {plan.memory.total / 2**20:.1f} MiB")

walks = map_chunked(simulate, chunk_size=plan.batch_size, meter=make_meter("text"))
excursions = walks(batch_keys(jax.random.key(1), 10_000), scale)
print(f"mean excursion {excursions.mean():.2f}, {walks.trace_count} compilation")
