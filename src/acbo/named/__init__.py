"""Models, samples, tables and files by name: the world outside compiled code."""

from acbo.named.buffer import (
    BufferStatistics,
    ExperienceBuffer,
)
from acbo.named.codec import (
    Codec,
    arrays_to_samples,
    samples_to_arrays,
)
from acbo.named.convert import (
    from_device_scm,
    to_device_scm,
)
from acbo.named.files import (
    read_json,
    read_pgmpy_json,
    scm_from_document,
    scm_to_document,
    write_json,
)
from acbo.named.fit import (
    fit_scm,
)
from acbo.named.frozen_map import (
    FrozenMap,
)
from acbo.named.handlers import (
    apply_intervention,
    clear_intervention_handlers,
    get_intervention_handler,
    list_intervention_types,
    register_intervention_handler,
    unregister_intervention_handler,
)
from acbo.named.interventions import (
    InterventionSpec,
    as_array,
    as_arrays,
    check_values,
    create_intervention,
    create_perfect_intervention,
    create_shift_intervention,
)
from acbo.named.linear import (
    LinearForm,
    create_linear_scm,
    is_linear,
    linear_form,
)
from acbo.named.mechanisms import (
    LinearMechanism,
    create_linear_mechanism,
    create_root_mechanism,
)
from acbo.named.model import (
    NamedSCM,
    create_scm,
)
from acbo.named.networks import (
    from_networkx,
    to_networkx,
)
from acbo.named.relations import (
    get_ancestors,
    get_children,
    get_descendants,
    get_edges,
    get_mechanisms,
    get_parents,
    get_target,
    get_variables,
    is_cyclic,
    topological_sort,
    validate_edge_consistency,
    validate_mechanisms,
)
from acbo.named.samples import (
    Sample,
    create_interventional_sample,
    create_observational_sample,
    create_sample,
    get_intervention_targets,
    get_intervention_type,
    get_metadata,
    get_value,
    get_values,
    is_interventional,
    is_observational,
)
from acbo.named.sampling import (
    create_intervention_grid,
    generate_mixed_dataset,
    generate_random_interventions,
    sample_from_scm,
    sample_with_intervention,
)
from acbo.named.standardize import (
    StandardizationParams,
    apply_standardization,
    compute_standardization_params,
    reverse_standardization,
    samples_to_avici_data,
    samples_to_avici_format,
)
from acbo.named.tables import (
    DataTable,
    frame_to_table,
    observed_ranges,
    read_csv,
    table_to_frame,
    write_csv,
)

__all__ = [
    "BufferStatistics",
    "Codec",
    "DataTable",
    "ExperienceBuffer",
    "FrozenMap",
    "InterventionSpec",
    "LinearForm",
    "LinearMechanism",
    "NamedSCM",
    "Sample",
    "StandardizationParams",
    "apply_intervention",
    "apply_standardization",
    "arrays_to_samples",
    "as_array",
    "as_arrays",
    "check_values",
    "clear_intervention_handlers",
    "compute_standardization_params",
    "create_intervention",
    "create_intervention_grid",
    "create_interventional_sample",
    "create_linear_mechanism",
    "create_linear_scm",
    "create_observational_sample",
    "create_perfect_intervention",
    "create_root_mechanism",
    "create_sample",
    "create_scm",
    "create_shift_intervention",
    "fit_scm",
    "frame_to_table",
    "from_device_scm",
    "from_networkx",
    "generate_mixed_dataset",
    "generate_random_interventions",
    "get_ancestors",
    "get_children",
    "get_descendants",
    "get_edges",
    "get_intervention_handler",
    "get_intervention_targets",
    "get_intervention_type",
    "get_mechanisms",
    "get_metadata",
    "get_parents",
    "get_target",
    "get_value",
    "get_values",
    "get_variables",
    "is_cyclic",
    "is_interventional",
    "is_linear",
    "is_observational",
    "linear_form",
    "list_intervention_types",
    "observed_ranges",
    "read_csv",
    "read_json",
    "read_pgmpy_json",
    "register_intervention_handler",
    "reverse_standardization",
    "sample_from_scm",
    "sample_with_intervention",
    "samples_to_arrays",
    "samples_to_avici_data",
    "samples_to_avici_format",
    "scm_from_document",
    "scm_to_document",
    "table_to_frame",
    "to_device_scm",
    "to_networkx",
    "topological_sort",
    "unregister_intervention_handler",
    "validate_edge_consistency",
    "validate_mechanisms",
    "write_csv",
    "write_json",
]
