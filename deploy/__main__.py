"""`python -m deploy` writes the files in this directory from the code that defines them."""

import json
from pathlib import Path

from deploy.chart import templates
from deploy.grafana import dashboard

from muster.api.crds import crds
from muster.api.installation import installation
from muster.cli.install import IMAGE
from muster.cli.yaml_text import to_documents, to_yaml

HERE = Path(__file__).parent


def main() -> None:
    (HERE / "crds").mkdir(exist_ok=True)
    for definition in crds():
        (HERE / "crds" / f"{definition['spec']['names']['plural']}.yaml").write_text(to_yaml(definition))
    (HERE / "muster.yaml").write_text(to_documents(installation(IMAGE)))
    for path, text in templates().items():
        target = HERE / "helm" / "muster" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (HERE / "observability" / "grafana.json").write_text(json.dumps(dashboard(), indent=1) + "\n")


if __name__ == "__main__":
    main()
