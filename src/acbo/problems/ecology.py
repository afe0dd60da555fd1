"""An ecology problem: calcification of a coral reef in a linear model of ours."""

from acbo.named.linear import create_linear_scm
from acbo.problems.problem import Problem, linear_problem

VARIABLES = (
    *("light", "nutrients", "grazers", "temperature", "carbon_dioxide", "acidity"),
    *("saturation", "algae", "calcification"),
)


def reef_linear() -> Problem:
    """Calcification of a reef, in standardized units; maximize.

    The equations are ours, made for tests in the manner of linear reef models; they
    describe no real reef. Every variable adds noise of standard deviation 0.5.
    Temperature and saturation are measured and cannot be set.
    """
    scm = create_linear_scm(
        VARIABLES,
        {
            ("light", "temperature"): 0.5,
            ("temperature", "carbon_dioxide"): 0.6,
            ("carbon_dioxide", "acidity"): 0.8,
            ("acidity", "saturation"): -0.7,
            ("temperature", "saturation"): 0.3,
            ("nutrients", "algae"): 0.7,
            ("grazers", "algae"): -0.6,
            ("light", "algae"): 0.3,
            ("saturation", "calcification"): 0.8,
            ("light", "calcification"): 0.4,
            ("algae", "calcification"): -0.5,
            ("temperature", "calcification"): -0.4,
        },
        target="calcification",
        ranges={
            "light": (-1.0, 1.0),
            "nutrients": (-1.0, 2.0),
            "grazers": (-2.0, 1.5),
            "carbon_dioxide": (-1.5, 2.0),
            "acidity": (-1.0, 1.0),
            "algae": (-1.0, 2.0),
        },
        intercepts={"calcification": 1.0},
        noise_scales=0.5,
    )
    return linear_problem("reef_linear", scm, "MAXIMIZE")
