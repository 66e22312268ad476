import Database from "libsql";

// spinImports are the fermyon:spin interfaces: databases maps labels to files, which are
// opened read-only, and variables maps names to values.
export function spinImports({ databases, variables }) {
  return {
    "fermyon:spin/sqlite": { Connection: connections(databases) },
    "fermyon:spin/variables": {
      get(name) {
        if (!Object.hasOwn(variables, name)) {
          throw failure("undefined", name);
        }
        return variables[name];
      },
    },
  };
}

// failure is how jco takes the error case of a result.
function failure(tag, val) {
  return Object.assign(new Error(`${tag}: ${val}`), { payload: { tag, val } });
}

function connections(files) {
  const opened = new Map(
    Object.entries(files).map(([label, file]) => [label, { database: new Database(file, { readonly: true }), statements: new Map() }]),
  );

  return class Connection {
    #of;

    static open(label) {
      if (!opened.has(label)) {
        throw failure("no-such-database");
      }
      const connection = new Connection();
      connection.#of = opened.get(label);
      return connection;
    }

    execute(text, parameters) {
      try {
        const statement = prepared(this.#of, text);
        const rows = statement.all(parameters.map(toSQL)); // as a list: a lone blob would pass for named parameters
        return {
          columns: statement.columns().map((column) => column.name),
          rows: rows.map((row) => ({ values: row.map(fromSQL) })),
        };
      } catch (error) {
        console.error(`spin.mjs: ${error.message}`);
        throw failure("io", String(error.message));
      }
    }
  };
}

function prepared({ database, statements }, text) {
  let statement = statements.get(text);
  if (statement === undefined) {
    statement = database.prepare(text).raw(true).safeIntegers(true);
    statements.set(text, statement);
  }
  return statement;
}

function toSQL({ tag, val }) {
  return tag === "null" ? null : tag === "blob" ? Buffer.from(val) : val;
}

function fromSQL(value) {
  switch (typeof value) {
    case "bigint":
      return { tag: "integer", val: value };
    case "number":
      return { tag: "real", val: value };
    case "string":
      return { tag: "text", val: value };
  }
  return value === null ? { tag: "null" } : { tag: "blob", val: new Uint8Array(value) };
}
