# Image of web, worker, live worker, beat and the upgrade. From the root of the checkout:
#
#     docker build -f deploy/containers/control-plane.Dockerfile -t REGISTRY/consort/control-plane:0.1.0 \
#         --build-arg PYTHON_IMAGE=REGISTRY/python:3.11-slim --secret id=pip.conf,src=pip.conf .
#
# pip.conf is optional: it names your package index, or `find-links` and `no-index` where there is none.
# Both are of the build alone and stay out of the image.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements/control-plane.txt /tmp/requirements.txt
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    python -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --require-hashes --only-binary :all: -r /tmp/requirements.txt \
    && /opt/venv/bin/python -m pip uninstall --yes pip
WORKDIR /opt/consort
COPY manage.py ./
COPY controlplane controlplane
COPY inventory inventory
COPY routing routing
COPY templates templates
# Settings make their secrets in CONSORT_VAR when none are given, as here; that folder stays behind.
RUN CONSORT_VAR=/tmp/var STATIC_ROOT=/opt/consort/static /opt/venv/bin/python manage.py collectstatic --no-input \
    && /opt/venv/bin/python -m whitenoise.compress --quiet static \
    && /opt/venv/bin/python -m compileall -q controlplane inventory routing manage.py

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="consort control plane" org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/venv/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CONSORT_VAR=/var/lib/consort \
    STATIC_ROOT=/opt/consort/static
# The one folder that is written to, beside /tmp; whoever runs the image mounts both.
RUN install -d -m 0750 -o 10001 -g 10001 /var/lib/consort
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/consort /opt/consort
WORKDIR /opt/consort
USER 10001:10001
EXPOSE 8000
# gunicorn and Celery let running work end on it.
STOPSIGNAL SIGTERM
CMD ["python", "-m", "gunicorn", "controlplane.config.wsgi", "--bind=0.0.0.0:8000", "--workers=2", "--threads=4", "--timeout=60", "--graceful-timeout=30", "--worker-tmp-dir=/dev/shm", "--no-control-socket", "--error-logfile=-"]
