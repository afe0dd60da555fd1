"""Score agents of one's own over 400 tasks: what does a single turn or flip solve?

An agent is anything with `sample(key, observation)`; `evaluate` plays every pair of
every task with it. On test pairs the answer is hidden and the last step hands in.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

import jaxarc
from jaxarc.actions import MaskAction
from jaxarc.learning import evaluate
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.tasks import extract_task_id_from_index
from jaxrig.learn import Choice


class OneOperation(eqx.Module):
    """Always the same operation, on nothing selected: turns and flips act on all."""

    operation: Int[Array, ""]  # an array, so that all agents share one program

    def sample(self, key, observation):
        """The action; log probability and value are for learners alone."""
        action = MaskAction(self.operation, jnp.zeros(observation.shape, bool))
        return Choice(action, jnp.zeros(()), jnp.zeros(()))


# A name of one's own for the same tasks with two steps: one to act, one to hand in.
jaxarc.register("two-steps", max_episode_steps=2, dataset="AGI1-train")
env, params = jaxarc.make("two-steps", episode_mode="test")
ids = [extract_task_id_from_index(row) for row in params.buffer.task_index]

for operation in (Op.ROTATE_C, Op.ROTATE_CC, Op.FLIP_HORIZONTAL, Op.FLIP_VERTICAL):
    agent = OneOperation(jnp.asarray(operation, jnp.int32))
    result = evaluate(agent, env, jax.random.key(0), attempts=1)
    solved = {ids[row] for row in np.unique(result.rows[result.solved[0]])}
    named = ", ".join(sorted(map(str, solved))) or "none"
    print(f"{operation.name}: {result.pair_rate:.1%} of {len(result.pairs)} test pairs")
    print(f"  {named}")
