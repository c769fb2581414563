"""Checks of claims for devices: what they name, their selectors, and whether any node could ever satisfy them."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
from msgspec.structs import replace

from situate.cli.commands.check.input import CheckDevices, CheckInput, ReadClaim
from situate.cli.commands.check.rules import (
    BAD_SELECTOR,
    FAILING_SELECTOR,
    NO_CLAIM,
    NO_DEVICE_CLASS,
    NO_DEVICES,
    TWO_CLASSES,
    Finding,
    Row,
    findings,
)
from situate.cli.input.workloads import PodWorkload
from situate.cli.output.text import plural
from situate.core.contract import FITS, NodeFailures
from situate.core.devices.extended import ExtendedResources
from situate.core.devices.requests import alternatives
from situate.core.devices.selectors import SelectorFailedError
from situate.core.explain.device_details import device_details
from situate.core.model.devices import Device, DeviceSelectorSource, DeviceSubRequest, ResourceClaim, ResourceSlice
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import Pod, PodResourceClaim, PodSpec
from situate.core.place.profile import Profile
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

TEMPLATE: Final = "ResourceClaimTemplate"


def check_devices(read: CheckInput, profile: Profile) -> Iterator[Finding]:
    plugin = next((one for one in profile.filters if isinstance(one, DynamicResources)), None)
    devices = read.devices
    for one in read.workloads:
        yield from findings(one, _names(one, devices))
    if plugin is None:
        return
    selectors = _Selectors(plugin, [one for one in devices.others if isinstance(one, ResourceSlice)])
    yield from _classes(devices, selectors)
    bad: dict[str, None] = {}
    for claim in (*devices.claims.values(), *devices.templates.values()):
        found = list(_claim(claim, devices, selectors))
        if found:
            bad[claim.subject] = None
        yield from found
    if not devices.has_slices or not read.nodes:
        return
    empty = _EmptyCluster(read, plugin, profile)
    for claim in (*devices.claims.values(), *devices.templates.values()):
        allocated = claim.claim.status.allocation is not None
        if claim.subject not in bad and not allocated and (why := empty.refusal([claim])):
            bad[claim.subject] = None
            change = "ask for less, or add nodes with such devices"
            yield Finding(NO_DEVICES, claim.subject, claim.file, f"{claim.path}.devices", why, change)
    for one in read.workloads:
        named = [claim for claim in _claims_of(one, devices) if claim is not None]
        if len(named) > 1 and not any(claim.subject in bad for claim in named) and (why := empty.refusal(named)):
            change = "ask for less, or add nodes with such devices"
            yield from findings(one, [(NO_DEVICES, "resourceClaims", f"its claims together: {why}", change)])


# -- names -------------------------------------------------------------------------------------------------------------


def _claims_of(one: PodWorkload, devices: CheckDevices) -> list[ReadClaim | None]:
    return [
        devices.templates.get((one.namespace, entry.resource_claim_template_name))
        if entry.resource_claim_template_name is not None
        else devices.claims.get((one.namespace, entry.resource_claim_name or ""))
        for entry in one.pod.spec.resource_claims
    ]


def _names(one: PodWorkload, devices: CheckDevices) -> Iterator[Row]:
    found = _claims_of(one, devices)
    made = [status.name for status in one.pod.status.resource_claim_statuses]
    for number, (entry, claim) in enumerate(zip(one.pod.spec.resource_claims, found, strict=True)):
        template = entry.resource_claim_template_name
        known = devices.claims if template is None else devices.templates
        if claim is not None or not known or entry.name in made:
            continue  # without any in the input, they may be elsewhere
        kind, name = ("ResourceClaim", entry.resource_claim_name) if template is None else (TEMPLATE, template)
        field = "resourceClaimName" if template is None else "resourceClaimTemplateName"
        yield (
            NO_CLAIM,
            f"resourceClaims[{number}].{field}",
            f"no {kind} of namespace {one.namespace} has the name {name}: its pods wait for it",
            f"create the {kind} {name}, or correct the name",
        )


# -- classes and selectors ---------------------------------------------------------------------------------------------


class _Selectors:
    """Compiles selectors, and tries them on all devices that were read."""

    def __init__(self, plugin: DynamicResources, slices: Sequence[ResourceSlice]) -> None:
        self._compile = cache(plugin.searching.compile_selector)
        self.devices = [(device, item.spec.driver) for item in slices for device in item.spec.devices]

    def problems(
        self, selectors: Sequence[DeviceSelectorSource], within: Sequence[DeviceSelectorSource] = ()
    ) -> Iterator[tuple[int, bool, str]]:
        """(number, whether it does not even compile, what is wrong). `within` selects the devices that are asked."""
        for number, selector in enumerate(selectors):
            expression = "" if selector.cel is None else selector.cel.expression
            try:
                compiled = self._compile(expression)
            except SelectorFailedError as error:
                yield number, True, " ".join(str(error).split())
                continue
            asked = failed = 0
            first = ""
            for device, driver in self.devices:
                if not self._all_match(within, device, driver) or not self._all_match(
                    selectors[:number], device, driver
                ):
                    continue
                asked += 1
                try:
                    compiled.matches(device, driver)
                except SelectorFailedError as error:
                    failed += 1
                    first = first or f"{device.name} of {driver}: {' '.join(str(error).split())}"
            if failed:
                yield number, False, f"fails on {failed} of {plural(asked, 'device')}, such as {first}"

    def _all_match(self, selectors: Sequence[DeviceSelectorSource], device: Device, driver: str) -> bool:
        try:
            return all(
                self._compile("" if one.cel is None else one.cel.expression).matches(device, driver)
                for one in selectors
            )
        except SelectorFailedError:
            return False


def _classes(devices: CheckDevices, selectors: _Selectors) -> Iterator[Finding]:
    served: dict[str, list[str]] = {}
    table = ExtendedResources()
    for name, (one, file) in devices.classes.items():
        subject = f"DeviceClass {name}"
        yield from _selector_findings(selectors.problems(one.spec.selectors), subject, file, "spec.selectors")
        table.put(None, one)
        if one.spec.extended_resource_name:
            served.setdefault(one.spec.extended_resource_name, []).append(name)
    for resource, names in served.items():
        for name in names if len(names) > 1 else ():
            wins = table.classes.get(resource, "")
            if name != wins:
                told = f"{wins} serves {resource}, too, and is the one that counts: {name} is never used for it"
                yield Finding(
                    TWO_CLASSES,
                    f"DeviceClass {name}",
                    devices.classes[name][1],
                    "spec.extendedResourceName",
                    told,
                    "give each class an extended resource of its own",
                )


def _selector_findings(
    problems: Iterator[tuple[int, bool, str]], subject: str, file: str, path: str
) -> Iterator[Finding]:
    for number, uncompiled, text in problems:
        rule = BAD_SELECTOR if uncompiled else FAILING_SELECTOR
        change = "correct the expression" if uncompiled else "guard it with has(), or use .? with orValue()"
        told = text if uncompiled else f"{text}; every pod that comes to such a device fails"
        yield Finding(rule, subject, file, f"{path}[{number}].cel.expression", told, change)


def _claim(one: ReadClaim, devices: CheckDevices, selectors: _Selectors) -> Iterator[Finding]:
    for number, request in enumerate(one.claim.spec.devices.requests):
        for at, (parent, ask) in enumerate(alternatives(request)):
            which = f"firstAvailable[{at}]" if parent else "exactly"
            path = f"{one.path}.devices.requests[{number}].{which}"
            yield from _request(one, ask, path, devices, selectors)


def _request(
    one: ReadClaim, ask: DeviceSubRequest, path: str, devices: CheckDevices, selectors: _Selectors
) -> Iterator[Finding]:
    known = devices.classes.get(ask.device_class_name)
    if known is None and devices.classes:
        yield Finding(
            NO_DEVICE_CLASS,
            one.subject,
            one.file,
            f"{path}.deviceClassName",
            f"no DeviceClass has the name {ask.device_class_name}",
            f"create the DeviceClass, or use one of {', '.join(sorted(devices.classes))}",
        )
    within = () if known is None else known[0].spec.selectors
    problems = selectors.problems(ask.selectors, within)
    yield from _selector_findings(problems, one.subject, one.file, f"{path}.selectors")


# -- whether it is possible --------------------------------------------------------------------------------------------


class _EmptyCluster:
    """The nodes that were read, with all their devices free."""

    def __init__(self, read: CheckInput, plugin: DynamicResources, profile: Profile) -> None:
        self._plugin, self._profile = plugin, profile
        self._cluster = Cluster()
        classes = [one for one, _ in read.devices.classes.values()]
        self._cluster.load(read.nodes, [*classes, *read.devices.others], ())

    def refusal(self, claims: Sequence[ReadClaim]) -> str:
        """Why no node can satisfy these claims together; empty if one can."""
        meta = ObjectMeta(namespace=claims[0].claim.metadata.namespace, name="checked", uid="checked")
        made = [
            ResourceClaim(metadata=replace(meta, name=one.claim.metadata.name), spec=one.claim.spec) for one in claims
        ]
        entries = tuple(PodResourceClaim(name=one.metadata.name, resource_claim_name=one.metadata.name) for one in made)
        pod = Pod(metadata=meta, spec=PodSpec(resource_claims=entries))
        for claim in made:
            self._cluster.put_object(claim)
        try:
            return self._refusal(pod)
        finally:
            for claim in made:
                self._cluster.forget_object(claim)

    def _refusal(self, pod: Pod) -> str:
        kind, view = self._cluster.class_of(pod), View(self._cluster)
        match self._plugin.check(kind, view):
            case np.ndarray() as codes if not ((codes == FITS) & view.present).any():
                rows = np.flatnonzero(view.present)
                told = device_details(self._profile, kind, view, rows, "")
                return "; ".join(one.text for one in told[:2]) or f"{plural(len(rows), 'node')} cannot satisfy it"
            case NodeFailures(texts=texts):
                return next(iter(texts.values()))
        return ""


def device_notes(read: CheckInput) -> list[str]:
    entries = [entry for one in read.workloads for entry in one.pod.spec.resource_claims]
    devices = read.devices
    if not entries and not devices.claims and not devices.templates:
        return []
    if devices.problem:
        return [f"{devices.problem}: SIT012 to SIT017 are not checked, or only in part"]
    notes = []
    if entries and not devices.claims and not devices.templates:
        notes.append("the input has no ResourceClaim and no ResourceClaimTemplate: SIT012 is not checked")
    if not devices.classes:
        notes.append("the input has no DeviceClass: SIT013 is not checked")
    if not devices.has_slices:
        notes.append("the input has no ResourceSlice: SIT015 and SIT016 are not checked")
    return notes
