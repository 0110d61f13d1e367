"""The words that scenarios and supervisors share: policy, outcomes, rules, a caller's actions. A pure leaf."""

from __future__ import annotations

from pytest_agentproc.vocabulary._artifacts import ARTIFACTS, INCOMPLETE, RESULT_FIELDS
from pytest_agentproc.vocabulary._bug_families import BUG_FAMILIES
from pytest_agentproc.vocabulary._dialect import Dialect
from pytest_agentproc.vocabulary._dialects import DIALECTS
from pytest_agentproc.vocabulary._drive import (
    ABILITIES,
    CAPABILITIES,
    CallbackError,
    Caller,
    CallerAction,
    CallerRole,
    ContinuedSession,
    Handler,
    HookUse,
    find_needed_capabilities,
)
from pytest_agentproc.vocabulary._outcomes import (
    LEVEL_TEXTS,
    LEVELS,
    LIMIT_OUTCOMES,
    OUTCOME_TEXTS,
    REFUSED_STARTS,
    SPAWN_ERRORS,
    Outcome,
    choose_reported_outcomes,
    compute_exit_code,
)
from pytest_agentproc.vocabulary._policy import (
    CONTAINMENTS,
    LIST_NAMES,
    NANOSECONDS,
    OPTIONAL_NAMES,
    POLICY_NAMES,
    SIZE_NAMES,
    TIME_NAMES,
    WORD_NAMES,
    Policy,
    list_time_names,
    to_nanoseconds,
)
from pytest_agentproc.vocabulary._rules import RULES, Rule
from pytest_agentproc.vocabulary._script_step import VALUE_TYPES, ScriptStep
from pytest_agentproc.vocabulary._signals import FIRST_SIGNALS, SIGNALS, signal_name, signal_number
from pytest_agentproc.vocabulary._stated import PartlyStated, mark_unstated
from pytest_agentproc.vocabulary._subject import LimitsRequest, RunReport, RunRequest, Subject, View

__all__ = [
    "ABILITIES",
    "ARTIFACTS",
    "BUG_FAMILIES",
    "CAPABILITIES",
    "CONTAINMENTS",
    "DIALECTS",
    "FIRST_SIGNALS",
    "INCOMPLETE",
    "LEVELS",
    "LEVEL_TEXTS",
    "LIMIT_OUTCOMES",
    "LIST_NAMES",
    "NANOSECONDS",
    "OPTIONAL_NAMES",
    "OUTCOME_TEXTS",
    "POLICY_NAMES",
    "REFUSED_STARTS",
    "RESULT_FIELDS",
    "RULES",
    "SIGNALS",
    "SIZE_NAMES",
    "SPAWN_ERRORS",
    "TIME_NAMES",
    "VALUE_TYPES",
    "WORD_NAMES",
    "CallbackError",
    "Caller",
    "CallerAction",
    "CallerRole",
    "ContinuedSession",
    "Dialect",
    "Handler",
    "HookUse",
    "LimitsRequest",
    "Outcome",
    "PartlyStated",
    "Policy",
    "Rule",
    "RunReport",
    "RunRequest",
    "ScriptStep",
    "Subject",
    "View",
    "choose_reported_outcomes",
    "compute_exit_code",
    "find_needed_capabilities",
    "list_time_names",
    "mark_unstated",
    "signal_name",
    "signal_number",
    "to_nanoseconds",
]
