# Image of a router: `routing` and its libraries; no Django, no database driver, no client of clusters.
# From the root of the checkout, with the same arguments as the control plane's:
#
#     docker build -f deploy/containers/router.Dockerfile -t REGISTRY/consort/router:0.1.0 \
#         --build-arg PYTHON_IMAGE=REGISTRY/python:3.11-slim --secret id=pip.conf,src=pip.conf .
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements/router.txt /tmp/requirements.txt
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    python -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --require-hashes --only-binary :all: -r /tmp/requirements.txt \
    && /opt/venv/bin/python -m pip uninstall --yes pip
WORKDIR /opt/consort
COPY routing routing
RUN /opt/venv/bin/python -m compileall -q routing

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="consort router" org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/venv/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
# Documents, usage and what was learned; whoever runs the image mounts it, and /tmp.
RUN install -d -m 0750 -o 10001 -g 10001 /var/lib/consort
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/consort /opt/consort
WORKDIR /opt/consort
USER 10001:10001
EXPOSE 8080 8081
# Running answers get --drain-seconds; give the container longer than that.
STOPSIGNAL SIGTERM
ENTRYPOINT []
CMD ["python", "-m", "routing.servers", "--help"]
