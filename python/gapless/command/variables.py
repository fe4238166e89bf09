"""`gapless variables`: what each environment variable does, from the table that docs/environment.md is made from."""

import textwrap

from gapless.environment import VARIABLES, Variable
from gapless.errors import UserError


def variables(arguments) -> int:
    chosen = [v for v in sorted(VARIABLES, key=lambda v: v.for_developers) if arguments.name in (None, v.name)]
    if arguments.name == "":
        raise UserError("the name of the variable is empty", 2)
    if not chosen:
        raise UserError(f"there is no variable {arguments.name}; there are: {', '.join(v.name for v in VARIABLES)}", 2)
    print("\n\n".join(map(described, chosen)))
    return 0


def described(variable: Variable) -> str:
    values = "|".join(variable.words()) or f"<{variable.values}>"
    developers = "  [for developers]" if variable.for_developers else ""
    heading = f"{variable.name}={values}  (default: {variable.default}){developers}"
    return heading + "\n" + textwrap.fill(variable.meaning, 100, initial_indent="    ", subsequent_indent="    ")
