import json
from datetime import date

from bench import report
from bench.report import Report, keep


def test_the_tables_of_a_benchmark_are_kept_as_numbers_beside_those_of_others(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "PRINTED", [])  # other tests print tables too
    figures = tmp_path / "figures.json"
    figures.write_text('{"pages": {}, "replay": {"measured": "2025-01-01"}}')

    Report(title="Pages", columns=["event", "units", "read"], rows=[("300 B", "1,000.5", "")]).print()
    keep("pages", date(2026, 11, 22), figures)

    assert json.loads(figures.read_text()) == {
        "pages": {
            "measured": "2026-11-22",
            "tables": [
                {
                    "title": "Pages",
                    "columns": ["event", "units", "read"],
                    "rows": [["300 B", 1000.5, None]],
                }
            ],
        },
        "replay": {"measured": "2025-01-01"},
    }
    assert "1,000.5" in capsys.readouterr().out
