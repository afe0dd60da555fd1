"""Amortized causal Bayesian optimization: what causes a target, and how to move it.

Names are loaded on first use, so that `import acbo` costs next to nothing.
"""

from typing import TYPE_CHECKING

from jaxrig.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from acbo import acquisition, baselines, evaluation, problems, training
    from acbo.campaign import Campaign
    from acbo.mechanisms import (
        create_linear_mechanism,
        create_mechanism,
        create_root_mechanism,
    )
    from acbo.named.files import (
        fit_scm,
        from_networkx,
        read_json,
        read_pgmpy_json,
        to_networkx,
        write_json,
    )
    from acbo.named.model import (
        NamedSCM,
        create_linear_scm,
        create_scm,
        get_parents,
        is_linear,
    )
    from acbo.named.samples import (
        Sample,
        apply_intervention,
        create_perfect_intervention,
        create_sample,
        create_soft_intervention,
        sample_from_scm,
        sample_with_intervention,
        samples_to_arrays,
        samples_to_avici_data,
        samples_to_avici_format,
    )
    from acbo.named.tables import (
        DataTable,
        Experiments,
        frame_to_table,
        read_csv,
        table_to_frame,
        write_csv,
    )
    from acbo.policy.advisor import load_policy
    from acbo.policy.suggest import suggest
    from acbo.posterior.distribution import (
        ParentSetPosterior,
        create_parent_set_posterior,
    )
    from acbo.posterior.exact import exact_edge_posterior, exact_parent_posterior
    from acbo.posterior.order_chains import sample_graphs
    from acbo.surrogate.predictor import infer_graphs, load_surrogate
    from acbo.training.difficulty import create_training_batch
    from acbo.training.parent_set_model import (
        create_parent_set_model,
        predict_parent_posterior,
    )

__getattr__ = lazy_attributes(__name__, __file__)

__all__ = [
    "Campaign",
    "DataTable",
    "Experiments",
    "NamedSCM",
    "ParentSetPosterior",
    "Sample",
    "acquisition",
    "apply_intervention",
    "baselines",
    "create_linear_mechanism",
    "create_linear_scm",
    "create_mechanism",
    "create_parent_set_model",
    "create_parent_set_posterior",
    "create_perfect_intervention",
    "create_root_mechanism",
    "create_sample",
    "create_scm",
    "create_soft_intervention",
    "create_training_batch",
    "evaluation",
    "exact_edge_posterior",
    "exact_parent_posterior",
    "fit_scm",
    "frame_to_table",
    "from_networkx",
    "get_parents",
    "infer_graphs",
    "is_linear",
    "load_policy",
    "load_surrogate",
    "predict_parent_posterior",
    "problems",
    "read_csv",
    "read_json",
    "read_pgmpy_json",
    "sample_from_scm",
    "sample_graphs",
    "sample_with_intervention",
    "samples_to_arrays",
    "samples_to_avici_data",
    "samples_to_avici_format",
    "suggest",
    "table_to_frame",
    "to_networkx",
    "training",
    "write_csv",
    "write_json",
]
