"""The options of a top-k cross-entropy, validated once, and the defaults of each relaxation."""

from dataclasses import dataclass

from .checks import choice, number, positive

NETWORKS = ("odd_even", "bitonic", "splitter_selection")
METHODS = ("softmax", "neuralsort", "softsort", "sinkhorn", *NETWORKS)
TOP1_MODES, SOFTMAX_OVER = ("sort", "sm", "smce"), ("candidates", "classes")
IMPLEMENTATIONS = ("auto", "torch", "triton")
DISTRIBUTIONS = ("logistic", "logistic_phi", "cauchy", "gaussian", "reciprocal", "optimal")

# NeuralSort, SoftSort, logistic_phi and logistic: the settings with which Petersen et al. (2022) trained heads on
# ImageNet. Cauchy: their package's example. Reciprocal and optimal have Cauchy's tails and take its value; Gaussian
# has light tails like logistic. SinkhornSort scales with m, see `default_inverse_temperature`.
_INVERSE_TEMPERATURE = {"softmax": 1.0, "neuralsort": 0.5, "softsort": 0.5}
_NETWORK_INVERSE_TEMPERATURE = {
    "logistic": 0.5,
    "logistic_phi": 1.0,
    "cauchy": 2.0,
    "gaussian": 0.5,
    "reciprocal": 2.0,
    "optimal": 2.0,
}


def default_inverse_temperature(method: str, distribution: str, m: int) -> float:
    """The inverse temperature that a method takes when none is given.

    SinkhornSort's cost between neighbouring ranks shrinks as 1 / (m - 1), so that its inverse temperature grows
    with m: ten for each step between two targets keeps the blur at about one rank, whatever m is.
    """
    if method in NETWORKS:
        return _NETWORK_INVERSE_TEMPERATURE[distribution]
    if method == "sinkhorn":
        return 10.0 * max(m - 1, 1)
    return _INVERSE_TEMPERATURE[method]


@dataclass(frozen=True)
class Settings:
    """All options of a top-k cross-entropy but `p_k` and what belongs to the reduction.

    Attributes:
        method: the relaxation, one of `METHODS`.
        m: number of candidates of a row, the label among them; None keeps all classes.
        inverse_temperature: 1 / tau, above 0; None takes the method's default.
        distribution: for networks, the distribution whose CDF swaps, one of `DISTRIBUTIONS`.
        art_lambda: for `logistic_phi`, lambda of the activation replacement trick, in [0, 1).
        softsort_power: exponent of SoftSort's distance, above 0.
        sinkhorn_iterations: at most this many Sinkhorn iterations, at least 1.
        sinkhorn_tolerance: a row stops once its potentials move less than this.
        top1_mode: `smce`, `sm` or `sort`.
        softmax_over: `candidates` or `classes`.
        floor: added inside the logarithm, in [0, 0.5); 1e-7 is what difftopk does, 0 works in the log domain.
        impl: `auto`, `torch` or `triton`.
    """

    method: str = "neuralsort"
    m: int | None = 16
    inverse_temperature: float | None = None
    distribution: str = "logistic_phi"
    art_lambda: float = 0.5
    softsort_power: float = 1.0
    sinkhorn_iterations: int = 10
    sinkhorn_tolerance: float = 1e-6
    top1_mode: str = "smce"
    softmax_over: str = "candidates"
    floor: float = 0.0
    impl: str = "auto"

    def __post_init__(self) -> None:
        choice("method", self.method, METHODS)
        choice("distribution", self.distribution, DISTRIBUTIONS)
        choice("top1_mode", self.top1_mode, TOP1_MODES)
        choice("softmax_over", self.softmax_over, SOFTMAX_OVER)
        choice("impl", self.impl, IMPLEMENTATIONS)
        positive("softsort_power", self.softsort_power)
        if self.inverse_temperature is not None:
            positive("inverse_temperature", self.inverse_temperature)
        self._check_ranges()

    def _check_ranges(self) -> None:
        at_least_0, at_least_1 = (lambda x: x >= 0), (lambda x: x >= 1)
        if self.m is not None:
            number("m", self.m, "None or a whole number of at least 1", at_least_1, whole=True)
        number("art_lambda", self.art_lambda, "a number in [0, 1)", lambda x: 0 <= x < 1)
        number("floor", self.floor, "a number in [0, 0.5)", lambda x: 0 <= x < 0.5)
        number("sinkhorn_iterations", self.sinkhorn_iterations, "a whole number of at least 1", at_least_1, whole=True)
        number("sinkhorn_tolerance", self.sinkhorn_tolerance, "a number of at least 0", at_least_0)

    def candidates(self, num_classes: int) -> int:
        """The number of candidates of a row with `num_classes` classes."""
        return num_classes if self.m is None or num_classes < self.m else self.m

    @property
    def beta_by_row(self) -> bool:
        """Whether the inverse temperature follows from the number of a row's classes that are not masked."""
        return self.method == "sinkhorn" and self.m is None and self.inverse_temperature is None

    def beta(self, m: int) -> float:
        """The inverse temperature for rows of m candidates."""
        if self.inverse_temperature is not None:
            return self.inverse_temperature
        return default_inverse_temperature(self.method, self.distribution, self.m if self.m is not None else m)
