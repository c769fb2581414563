"""What holds for every test: how Hypothesis searches.

`ci` (the default) draws the same examples at each run, so that a red build is red for everybody. To look further:
`pytest --hypothesis-profile=search`, which draws new ones and prints how to repeat a failure.
"""

from hypothesis import HealthCheck, settings

# No deadline: two workers on two busy cores make any limit on one example's time a coin toss.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=1_000)
settings.load_profile("ci")
