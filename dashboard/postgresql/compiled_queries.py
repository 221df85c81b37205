"""Queries whose SQL is compiled once in a process, and asked again with other values.

To put a query with a dozen joins together takes Django longer than PostgreSQL takes to answer it, and what
comes out differs by its values alone. So it is put together with a `Parameter` where a value belongs, and its
statement is kept. What several rows of one answer are related to is one object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import DateTimeField, Expression, Field, ForeignKey, Lookup, Model, QuerySet
from django.db.models.sql import Query
from django.db.models.sql.compiler import SQLCompiler

from dashboard.postgresql.identity_map import map_identities
from dashboard.postgresql.prepared_statements import preparing_statements, write_constants

Row = TypeVar("Row", bound=Model)
Made = TypeVar("Made")
DATABASE = "default"
# What a compiler knows once it has compiled its statement, and whoever makes objects of rows asks it for.
COMPILER_RESULTS = ("select", "klass_info", "annotation_col_map", "col_count", "has_extra_select")


class Parameter(Expression):
    """Stands for the value of this name, which is known when the query is asked.

    Where it is reckoned with, or compared with what is worked out over other rows, it needs its field.
    """

    def __init__(self, name: str, output_field: Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, Any]:  # noqa: ARG002
        return "%s", (self,)


# As builders of queries take it: a moment of which nothing is known yet.
NOW: Any = Parameter("now", DateTimeField())


@ForeignKey.register_lookup
@Field.register_lookup
class InArray(Lookup):
    """`pk__in_array=rows`: one of their keys; or `Parameter("keys")`, of a list.

    The planner doesn't see into an array, as it does into the query after IN: it works out these keys first.
    """

    lookup_name = "in_array"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, left_parameters = self.process_lhs(compiler, connection)
        right, right_parameters = self.process_rhs(compiler, connection)
        array = "" if isinstance(self.rhs, Parameter) else "ARRAY"
        return f"{left} = ANY({array}{right})", (*left_parameters, *right_parameters)


class Statement:
    """`parameters`: with a Parameter where a value belongs."""

    def __init__(self, sql: str, parameters: tuple[Any, ...]) -> None:
        self.sql = sql
        self.parameters = parameters
        self._with_constants = ""

    def bind(self, values: Mapping[str, Any], connection: Any) -> tuple[str, list[Any]]:
        """The statement to run and its parameters; KeyError names a value that isn't there.

        A query set as a value takes its place as an array of what it lists.
        """
        given = {
            index: values[parameter.name]
            for index, parameter in enumerate(self.parameters)
            if isinstance(parameter, Parameter)
        }
        if has_query_set(values):
            return self._bind_rows(given)
        if not self._with_constants:
            constants = {
                index: parameter for index, parameter in enumerate(self.parameters) if index not in given
            }
            self._with_constants = write_constants(self.sql, constants, connection)
        return self._with_constants, list(given.values())

    def _bind_rows(self, given: Mapping[int, Any]) -> tuple[str, list[Any]]:
        parameters: list[Any] = []
        first, *texts = self.sql.split("%s")
        written = [first]
        for index, text in enumerate(texts):
            value = given.get(index, self.parameters[index])
            if isinstance(value, QuerySet):
                sql, inner = value.query.sql_with_params()
                written.append(f"ARRAY({sql})")
                parameters.extend(inner)
            else:
                written.append("%s")
                parameters.append(value)
            written.append(text)
        return "".join(written), parameters


def has_query_set(values: Mapping[str, Any]) -> bool:
    """Whether what is asked for stands in the statement itself, which is another one each time then."""
    return any(isinstance(value, QuerySet) for value in values.values())


class CompiledQuery(Generic[Row]):
    """What `build(*shape)` returns, compiled once for each shape.

    `build` has a Parameter where a value may differ from one time to the next. `shape` is what the SQL itself
    depends on: there should be few. `binary`: `read_values` reads numbers, truth values, arrays of them and
    text alone.
    """

    def __init__(self, build: Callable[..., QuerySet[Row]], *, binary: bool = False) -> None:
        self._build = build
        self._binary = binary
        self._compiled: dict[Hashable, _CompiledSql | None] = {}
        self._exists: dict[Hashable, Statement | None] = {}
        self._lock = threading.Lock()

    def read_rows(self, *shape: Hashable, **values: Any) -> list[Any]:
        """What the query set of this shape would list, with these values; also what it prefetches."""
        compiled = self._compile(shape)
        return [] if compiled is None else list(compiled.bound_rows(values))

    def read_values(
        self, make: Callable[[tuple[Any, ...]], Made], *shape: Hashable, **values: Any
    ) -> list[Made]:
        """What `make` makes of each row of a query of values, as PostgreSQL hands them over.

        For thousands of rows: what Django does with each takes twice as long as to read them. No field
        changes its value here, as one of JSON would.
        """
        compiled = self._compile(shape)
        if compiled is None:
            return []
        connection = connections[DATABASE]
        statement = compiled.statement.bind(values, connection)
        with preparing_statements(connection, binary=self._binary), connection.cursor() as cursor:
            cursor.execute(*statement)
            return [make(row) for row in cursor.fetchall()]

    def exists_statement(self, *shape: Hashable) -> Statement | None:
        """That says whether there are rows; None where there can't be."""
        if shape not in self._exists:
            try:
                sql, parameters = self._build(*shape).query.exists().sql_with_params()
                self._exists[shape] = Statement(sql, tuple(parameters))
            except EmptyResultSet:
                self._exists[shape] = None
        return self._exists[shape]

    def _compile(self, shape: Hashable) -> _CompiledSql | None:
        if shape not in self._compiled:
            with self._lock:
                try:
                    self._compiled[shape] = _CompiledSql(self._build(*shape))  # type: ignore[misc]
                except EmptyResultSet:
                    self._compiled[shape] = None
        return self._compiled[shape]


class _CompiledSql:
    """A query set, its statement, and what its compiler found out."""

    def __init__(self, rows: QuerySet[Any]) -> None:
        self.rows = rows
        compiler = rows.query.get_compiler(DATABASE)
        sql, parameters = compiler.as_sql()
        self.statement = Statement(sql, tuple(parameters))
        self.compiler_results = {name: getattr(compiler, name) for name in COMPILER_RESULTS}
        self.converters: dict[int, Any] | None = None

    def bound_rows(self, values: Mapping[str, Any]) -> QuerySet[Any]:
        """To be iterated, and nothing else: filtered, it would still ask the same."""
        query = _BoundQuery.__new__(_BoundQuery)
        query.__dict__.update(self.rows.query.__dict__)
        query.compiled, query.parameter_values = self, values
        rows = type(self.rows)(model=self.rows.model, query=query, using=DATABASE)
        for name in ("_prefetch_related_lookups", "_known_related_objects", "_iterable_class", "_fields"):
            setattr(rows, name, getattr(self.rows, name))
        return rows


class _BoundQuery(Query):
    compiled: _CompiledSql
    parameter_values: Mapping[str, Any]

    def get_compiler(self, using: Any = None, connection: Any = None, elide_empty: bool = True) -> Any:
        return _BoundCompiler(self, connection or connections[using], using, elide_empty)


class _BoundCompiler(SQLCompiler):
    query: _BoundQuery

    def as_sql(self, *args: Any, **kwargs: Any) -> tuple[str, Any]:  # noqa: ARG002
        compiled = self.query.compiled
        self.__dict__.update(compiled.compiler_results)
        self.klass_info = map_identities(compiled.compiler_results["klass_info"])
        return compiled.statement.bind(self.query.parameter_values, self.connection)

    def get_converters(self, expressions: Any) -> dict[int, Any]:
        """Those of its columns, looked for once: the columns are the same each time."""
        compiled = self.query.compiled
        if compiled.converters is None:
            compiled.converters = super().get_converters(expressions)
        return compiled.converters

    def execute_sql(self, *args: Any, **kwargs: Any) -> Any:
        with preparing_statements(self.connection):
            return super().execute_sql(*args, **kwargs)
