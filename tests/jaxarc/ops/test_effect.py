import jax.numpy as jnp
import numpy as np

from jaxarc.ops.effect import TERMS, Axis, Cells, Effect, Landing, Source, read_row


def test_a_row_of_the_table_reads_back_as_the_effect():
    effect = Effect(
        paint=Cells.AREA,
        color=7,
        landing=Landing.BOX,
        source=Source.CLIPBOARD,
        row=Axis(reverse=True, top=1, constant=-3),
        column=Axis(origin_column=2),
        wraps=True,
        resizes=True,
    )
    row = read_row(jnp.asarray(effect.numbers()))
    assert [int(x) for x in (row.paint, row.color, row.landing, row.source)] == [
        *(Cells.AREA, 7, Landing.BOX, Source.CLIPBOARD)
    ]
    flags = (row.row_reverse, row.column_reverse, row.wraps)
    assert [bool(x) for x in flags] == [True, False, True]
    acts = (row.copies, row.resizes, row.restores)
    assert [bool(x) for x in acts] == [False, True, False]
    terms = dict(zip(TERMS, np.asarray(row.terms).T.tolist(), strict=True))
    assert terms["top"] == [1, 0]
    assert terms["constant"] == [-3, 0]
    assert terms["origin_column"] == [0, 2]
