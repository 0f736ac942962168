"""Rows: what domains hold and groups weigh at some weights, counted by kinds."""

from __future__ import annotations

import numpy as np

from tests.build.domain_rows import rows_of


def test_a_row_has_what_each_domain_holds_and_each_group_weighs():
    rows = rows_of([5, 3, 9], [2, 4])

    assert rows.room[rows.kind_of_domain, 0].tolist() == [5, 3, 6], "no domain uses more than all groups take"
    assert rows.load[rows.kind_of_group, 0].tolist() == [2, 4]
    assert rows.fits[rows.kind_of_domain][:, rows.kind_of_group].tolist() == [[True, True], [True, False], [True, True]]


def test_equal_groups_and_equal_domains_are_of_one_kind():
    rows = rows_of([4, 4, 3], [2, 3, 2])

    assert rows.groups.tolist() == [2, 1]
    assert rows.domains.tolist() == [2, 1]


def test_a_domain_that_others_use_already_is_of_a_kind_of_its_own():
    assert rows_of([4, 4, 4], [2], shared=(1,)).domains.tolist() == [2, 1]


def test_a_set_is_ruled_out_by_the_kinds_of_its_groups():
    rows = rows_of([4, 4, 3], [2, 3, 2])

    rows.rule_out(1, np.array([1, 2]))

    assert [[each.tolist() for each in sets] for sets in rows.ruled_out] == [[[1, 1]], []]


def test_a_further_row_narrows_what_fits():
    rows = rows_of([4, 3], [2, 3])
    assert rows.fits.all()

    rows.add_weights(np.array([7]))

    assert rows.room.tolist() == [[4, 28], [3, 21]]
    assert rows.load.tolist() == [[2, 14], [3, 21]]
    assert rows.fits.all()
