"""The words that scenarios and supervisors share: policy, outcomes, rules, a caller's actions. A pure leaf."""

from __future__ import annotations

from pytest_agentproc.vocabulary._artifacts import ARTIFACT_TEXTS, INCOMPLETE_ARTIFACTS_WARNING, RESULT_FIELD_TEXTS
from pytest_agentproc.vocabulary._bug_families import BUG_FAMILIES
from pytest_agentproc.vocabulary._caller_actions import (
    CAPABILITIES,
    TEXTS_OF_OTHER_NEEDS,
    CallbackError,
    Caller,
    CallerAction,
    CallerRole,
    ContinuedSession,
    Handler,
    HookReaction,
    find_needed_capabilities,
)
from pytest_agentproc.vocabulary._dialect import Dialect
from pytest_agentproc.vocabulary._dialects import DIALECTS
from pytest_agentproc.vocabulary._outcomes import (
    ERRNO_BY_RESOURCE_SHORTAGE,
    ERRNO_BY_SPAWN_ERROR,
    LEVEL_TEXTS,
    LEVELS,
    OUTCOME_BY_LIMIT,
    OUTCOME_TEXTS,
    Outcome,
    choose_reported_outcomes,
    compute_exit_code,
)
from pytest_agentproc.vocabulary._policy import (
    ALL_LIMIT_NAMES,
    CONTAINMENT_NAMES,
    LIMITS_IN_BYTES,
    LIMITS_IN_SECONDS,
    LIMITS_THAT_ARE_LISTS,
    LIMITS_THAT_ARE_WORDS,
    LIMITS_THAT_MAY_BE_OFF,
    NANOSECONDS_PER_SECOND,
    Policy,
    list_time_names,
    to_nanoseconds,
)
from pytest_agentproc.vocabulary._rules import RULES, Rule
from pytest_agentproc.vocabulary._script_step import STEP_VALUE_TYPES, ScriptStep
from pytest_agentproc.vocabulary._signals import (
    SIGNAL_NUMBER_BY_NAME,
    SIGNALS_THAT_BEGIN_ENDING,
    format_signal_name,
    parse_signal_name,
)
from pytest_agentproc.vocabulary._stated_limits import PartlyStatedPolicy, mark_unstated_limits
from pytest_agentproc.vocabulary._subject import LimitsRequest, RunReport, RunRequest, Subject, View

__all__ = [
    "ALL_LIMIT_NAMES",
    "ARTIFACT_TEXTS",
    "BUG_FAMILIES",
    "CAPABILITIES",
    "CONTAINMENT_NAMES",
    "DIALECTS",
    "ERRNO_BY_RESOURCE_SHORTAGE",
    "ERRNO_BY_SPAWN_ERROR",
    "INCOMPLETE_ARTIFACTS_WARNING",
    "LEVELS",
    "LEVEL_TEXTS",
    "LIMITS_IN_BYTES",
    "LIMITS_IN_SECONDS",
    "LIMITS_THAT_ARE_LISTS",
    "LIMITS_THAT_ARE_WORDS",
    "LIMITS_THAT_MAY_BE_OFF",
    "NANOSECONDS_PER_SECOND",
    "OUTCOME_BY_LIMIT",
    "OUTCOME_TEXTS",
    "RESULT_FIELD_TEXTS",
    "RULES",
    "SIGNALS_THAT_BEGIN_ENDING",
    "SIGNAL_NUMBER_BY_NAME",
    "STEP_VALUE_TYPES",
    "TEXTS_OF_OTHER_NEEDS",
    "CallbackError",
    "Caller",
    "CallerAction",
    "CallerRole",
    "ContinuedSession",
    "Dialect",
    "Handler",
    "HookReaction",
    "LimitsRequest",
    "Outcome",
    "PartlyStatedPolicy",
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
    "format_signal_name",
    "list_time_names",
    "mark_unstated_limits",
    "parse_signal_name",
    "to_nanoseconds",
]
