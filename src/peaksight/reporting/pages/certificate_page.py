"""The page of `peaksight verify`: whether two runs train the same model, and what decided it."""

from peaksight.records.certificate import Certificate
from peaksight.reporting import certificate as words
from peaksight.reporting.json import certificate_to_json
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.frame import render_page


def certificate_to_html(certificate: Certificate) -> str:
    """`certificate` as a page that opens anywhere."""
    return render_page(
        "certificate.html",
        certificate_to_json(certificate),
        scripts=assets.PLAIN,
        certificate=certificate,
        certificates=words,
    )
